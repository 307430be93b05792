//! Questions about jsonb documents and arrays that are answered from the server's bytes, without the server.
//!
//! `translate` makes an `Ask` of an operator with a constant on its right side; it runs on any thread.
//! `server_bytes` has the answers, and `stripe::documents` those that need no whole documents.

use std::any::Any;
use std::sync::Arc;

use query::{HostFunction, Result};
use server_bytes::Question;
use stripe::scan::DeriveColumn;
use stripe::{OwnedChunk, documents};
use vector::{LogicalType, Selection, Vector};

use crate::storage::file::codecs::ServerCodecs;

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
        self.question.result()
    }

    /// Whether shredded documents can answer it.
    pub const fn has_paths(&self) -> bool {
        documents::has_paths(&self.question)
    }
}

impl HostFunction for Ask {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        Ok(self.question.answers(arguments.first().map(|argument| &**argument), rows)?)
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        self.question.operator()
    }
}

impl DeriveColumn for Ask {
    fn of_chunk(&self, chunk: &OwnedChunk, selection: &Selection) -> vector::Result<Vector> {
        documents::answers(&self.question, chunk, selection, &ServerCodecs)
    }

    fn of_vector(&self, documents: Vector) -> vector::Result<Vector> {
        let rows = documents.len();
        self.question.answers(Some(&documents.flatten()), rows)
    }
}
