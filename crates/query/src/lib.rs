//! Colonnade: query.
