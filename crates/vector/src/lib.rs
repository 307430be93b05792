//! What every part of Colonnade speaks: logical types, vectors, predicates and errors.
#![forbid(unsafe_code)]
