//! Questions about documents and arrays whose right side is known, and their answers.
//!
//! A host makes a question of one of its operators. `stripe` asks it of chunks, and hosts ask it of vectors,
//! on any thread.
//!
//! Invariant: the answer is the server's, for every value. A question never declines an answer, because a row
//! may have been handed out already. Bytes that no server wrote are `Corrupt`.

use vector::{LogicalType, Result, Values, Vector, VectorBuilder};

use crate::array::{self, Layout};
use crate::jsonb;

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

impl Question {
    /// The type of the answers.
    pub const fn result(&self) -> LogicalType {
        match self {
            Self::FieldText(_) => LogicalType::Text,
            Self::Field(_) => LogicalType::Bytes,
            _ => LogicalType::Bool,
        }
    }

    /// The operator, as the server writes it.
    pub const fn operator(&self) -> &'static str {
        match self {
            Self::FieldText(_) => "->>",
            Self::Field(_) => "->",
            Self::Contains(_) | Self::ArrayContains(..) => "@>",
            Self::Exists(_) => "?",
            Self::ArrayOverlaps(..) => "&&",
            Self::ArrayHas(..) => "= ANY",
        }
    }

    /// The answers for `rows` values, which are flat. NULL for NULL, and if there are no values.
    pub fn answers(&self, values: Option<&Vector>, rows: usize) -> Result<Vector> {
        let result = self.result();
        let values = values.and_then(|vector| match &vector.values {
            Values::Bytes(values) => Some((vector, values)),
            _ => None,
        });
        let mut builder = VectorBuilder::new(result);
        let mut text = Vec::new();
        for row in 0..rows {
            let Some((_, values)) = values.filter(|(vector, _)| vector.is_valid(row)) else {
                builder.push_null();
                continue;
            };
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

    /// The answer for one value, if it is a truth value. None is NULL.
    fn truth(&self, value: &[u8]) -> Result<Option<bool>> {
        Ok(match self {
            Self::Contains(other) => Some(jsonb::contains(value, other)?),
            Self::Exists(key) => Some(jsonb::exists(value, key)?),
            Self::ArrayContains(layout, others) => Some(array::contains(value, *layout, others)?),
            Self::ArrayOverlaps(layout, others) => Some(array::overlaps(value, *layout, others)?),
            Self::ArrayHas(layout, Some(other)) => array::has(value, *layout, other)?,
            // No element of an empty array equals NULL. For any other array it is unknown.
            Self::ArrayHas(layout, None) => array::is_empty(value, *layout)?.then_some(false),
            Self::FieldText(_) | Self::Field(_) => None,
        })
    }

    /// Appends the answer for one value, if it is a text or document. False for NULL.
    fn bytes(&self, value: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::FieldText(key) => jsonb::field_text(value, key, out),
            Self::Field(key) => jsonb::field(value, key, out),
            _ => Ok(false),
        }
    }
}
