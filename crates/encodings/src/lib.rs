//! Colonnade: encodings.
