//! What an expression of the server's calls, and whether an ERROR of it may be held back.
//!
//! Asked by the scan node and by the vectorised node. They compute some expressions before it is known
//! whether a row needs them.
//! - `value_error`: tries an expression and holds back an ERROR about a value
//! - `calls`: says which expressions may be tried: those of built-in functions that run nothing of a user's
//! - `foreign_order`: knows the types whose order a user has made
//! - `user_functions`: stops users' functions that both have missed
//! - `early_value`: computes expressions without columns this way
//! - `aggregate`: what the catalog says about an aggregate and its functions

pub mod aggregate;
pub mod calls;
pub mod early_value;
pub mod foreign_order;
pub mod user_functions;
pub mod value_error;
