//! What an expression of the server's calls, and whether an ERROR of it may be held back.
//!
//! Asked by the scan node and by the vectorised node, which compute some expressions before it is known
//! whether a row asks for them. `value_error` tries one and holds back an ERROR about a value. `calls` says
//! which may be tried: those of built-in functions that run nothing of a user's. `foreign_order` knows the
//! types whose order a user has made, `user_functions` stops what both have missed. `early_value` computes
//! expressions without columns this way. `aggregate` says what the catalog knows of an aggregate and its
//! functions.

pub mod aggregate;
pub mod calls;
pub mod early_value;
pub mod foreign_order;
pub mod user_functions;
pub mod value_error;
