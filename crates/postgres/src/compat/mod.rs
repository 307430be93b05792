//! The only place that knows which major version of the server this is built for.
//!
//! Each version is one folder with the same names; the rest of the crate uses them through this module.
//! Beside them stands what needs nothing but such names: `shared_memory`.

#[cfg(feature = "pg15")]
mod pg15;
pub mod shared_memory;

#[cfg(feature = "pg15")]
pub use pg15::*;
