//! PostgreSQL's own byte formats: numeric, jsonb, arrays and pglz.
//!
//! Called by `encodings`, which takes documents apart, by `stripe`, which answers questions about them, and
//! by hosts, whose values arrive in these formats.
//!
//! One format is one file or folder. Its header says the layout, and which of the server's headers describes
//! it. All words are little-endian, as on the machines that the server runs on here. A value comes without
//! the length word in front of it, unless the format says otherwise.
//!
//! Invariants: each format has one reader, and each constant one place. A reader takes any bytes, never looks
//! outside them and never panics. Bytes that no server wrote are `Error::Corrupt`, or `None` if the caller
//! has another way to go on.
#![forbid(unsafe_code)]

pub mod array;
pub mod jsonb;
pub mod numeric;
pub mod pglz;
mod question;
mod words;

pub use question::Question;
