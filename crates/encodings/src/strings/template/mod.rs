//! Byte strings as templates with holes: shredded JSON.
//!
//! A value is the number of its template and the contents of its holes. The holes of one path (say,
//! "revenue") are a child column with encodings of its own. A row is put together again by copying and adding
//! lengths, without knowledge of JSON. Only the encoder reads jsonb. It is told nothing about the SQL type:
//! it looks at a few values and declines quickly.
//!
//! | file | owns |
//! | --- | --- |
//! | `program.rs` | what a template is |
//! | `shape.rs` | a jsonb value -> the template it proposes |
//! | `matcher.rs` | does a value fit a template, and what are its holes? |
//! | `shred.rs` | a column -> template numbers and path columns |
//! | `encode.rs`, `stored.rs` | writing chunks and the shared section |
//! | `paths.rs` | single paths: names, values |
//! | `node.rs`, `fill.rs`, `batch.rs` | reading: path columns -> rows, one by one or many at once |
//! | `numbered.rs` | where the values of a row lie in the path columns |
//! | `one.rs` | reading one row without vectors |

mod batch;
mod encode;
mod fill;
mod matcher;
mod node;
mod numbered;
mod one;
mod paths;
mod program;
mod shape;
mod shred;
mod stored;

pub(crate) use encode::Template;
pub(crate) use node::{TemplateNode, open};
pub(crate) use paths::paths;
pub use paths::{Path, PathColumn, PathComponent};
pub use program::PathKind;
pub(crate) use stored::parse;
