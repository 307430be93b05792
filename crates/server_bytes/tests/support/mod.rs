//! Values in the server's formats, written apart from what reads them.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::cast_possible_truncation)]

pub mod arrays;
pub mod jsonb;
pub mod pglz;
