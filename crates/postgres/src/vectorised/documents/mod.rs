//! Questions about jsonb documents and arrays that are answered from the server's bytes, without the server.
//!
//! `translate` makes an `Ask` of an operator with a constant on its right side; it runs on any thread.
//! `jsonb` and `array` read the bytes. Invariant: the answer is the server's, for every value: nothing
//! declines, because a row may have been handed out already; bytes that no server wrote are `Corrupt`.

mod array;
mod jsonb;
mod shredded;

use std::any::Any;
use std::sync::Arc;

pub use array::{Layout, elements_of};
pub use jsonb::is_deep;
use query::{HostFunction, Result};
use vector::{ByteViews, LogicalType, Values, Vector, VectorBuilder};

/// What is asked of each value.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// `document ->> key`.
    FieldText(Vec<u8>),
    /// `document -> key`.
    Field(Vec<u8>),
    /// `document @> other`, with the other document's bytes.
    Contains(Vec<u8>),
    /// `document ? key`.
    Exists(Vec<u8>),
    /// `array @> others`; None is NULL.
    ArrayContains(Layout, Vec<Option<Vec<u8>>>),
    /// `array && others`.
    ArrayOverlaps(Layout, Vec<Option<Vec<u8>>>),
    /// `value = ANY (array)`; None is NULL.
    ArrayHas(Layout, Option<Vec<u8>>),
}

/// A question as a function of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    question: Question,
}

impl Ask {
    /// A function that answers this.
    pub fn new(question: Question) -> Arc<Self> {
        Arc::new(Self { question })
    }

    /// The type of the answers.
    pub const fn result(&self) -> LogicalType {
        match self.question {
            Question::FieldText(_) => LogicalType::Text,
            Question::Field(_) => LogicalType::Bytes,
            _ => LogicalType::Bool,
        }
    }

    /// Whether shredded documents can answer it.
    pub const fn has_paths(&self) -> bool {
        matches!(self.question, Question::FieldText(_) | Question::Contains(_) | Question::Exists(_))
    }

    /// The answer for one value; `out` takes texts. None is NULL.
    fn truth(&self, value: &[u8]) -> vector::Result<Option<bool>> {
        Ok(match &self.question {
            Question::Contains(other) => Some(jsonb::contains(value, other)?),
            Question::Exists(key) => Some(jsonb::exists(value, key)?),
            Question::ArrayContains(layout, others) => Some(array::contains(value, *layout, others)?),
            Question::ArrayOverlaps(layout, others) => Some(array::overlaps(value, *layout, others)?),
            Question::ArrayHas(layout, Some(other)) => array::has(value, *layout, other)?,
            // No element of an empty array equals NULL; of any other one it is unknown.
            Question::ArrayHas(layout, None) => array::is_empty(value, *layout)?.then_some(false),
            Question::FieldText(_) | Question::Field(_) => None,
        })
    }

    fn bytes(&self, value: &[u8], out: &mut Vec<u8>) -> vector::Result<bool> {
        match &self.question {
            Question::FieldText(key) => jsonb::field_text(value, key, out),
            Question::Field(key) => jsonb::field(value, key, out),
            _ => Ok(false),
        }
    }
}

impl HostFunction for Ask {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let result = self.result();
        let empty = ByteViews::new();
        let (values, argument) = match arguments.first().map(|argument| (&argument.values, argument)) {
            Some((Values::Bytes(values), argument)) => (values, Some(argument)),
            _ => (&empty, None),
        };
        let mut builder = VectorBuilder::new(result);
        let mut text = Vec::new();
        for row in 0..rows {
            if !argument.is_some_and(|argument| argument.is_valid(row)) {
                builder.push_null();
                continue;
            }
            let value = values.get(row);
            match result {
                LogicalType::Bool => match self.truth(value)? {
                    Some(truth) => _ = builder.push_bool(truth),
                    None => builder.push_null(),
                },
                _ => {
                    text.clear();
                    match self.bytes(value, &mut text)? {
                        true => _ = builder.push_bytes(&text),
                        false => builder.push_null(),
                    }
                }
            }
        }
        Ok(builder.finish(&|_, _, _| Box::default()))
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        match self.question {
            Question::FieldText(_) => "->>",
            Question::Field(_) => "->",
            Question::Contains(_) | Question::ArrayContains(..) => "@>",
            Question::Exists(_) => "?",
            Question::ArrayOverlaps(..) => "&&",
            Question::ArrayHas(..) => "= ANY",
        }
    }
}
