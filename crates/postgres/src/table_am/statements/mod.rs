//! Statements that concern a whole table.
//!
//! - `files`: files come and go (CREATE, TRUNCATE, DROP, SET TABLESPACE)
//! - `publication`: a table with cold rows cannot be published
//! - `slot_creation`: warns a session that creates a replication slot which decodes every table

pub mod files;
pub mod publication;
pub mod slot_creation;
