//! The one error enum of the pure crates. Hosts map it to their own error reports in one file each.

use std::fmt;

/// Result with the workspace's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Where in a stripe a stored byte was found to be wrong. It is filled in from the inside out: an encoding
/// knows only what is wrong, the stripe reader adds column and chunk, and the host adds table and stripe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Location {
    /// Zero-based position of the column in the stripe's schema.
    pub column: Option<u32>,
    /// Zero-based chunk of that column.
    pub chunk: Option<u32>,
    /// The host's number of the table and the first row number of the stripe, for an error that reaches the
    /// host at another place.
    pub stripe: Option<(u32, u64)>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.column, self.chunk) {
            (Some(column), Some(chunk)) => write!(f, "column {}, chunk {chunk}", column + 1),
            (Some(column), None) => write!(f, "column {}", column + 1),
            _ => f.write_str("stripe"),
        }
    }
}

/// Everything that can go wrong in a pure crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Stored bytes that break the format. Never a panic, never a wrong answer.
    #[error("corrupt {location}: {detail}")]
    Corrupt {
        /// Where, as far as known.
        location: Location,
        /// What is wrong with the bytes.
        detail: String,
    },
    /// A format version, encoding or codec that this build does not know.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// A caller broke a documented limit (a length, a type). It is a defect, or a user's value is too large.
    #[error("{0}")]
    InvalidInput(String),
    /// There is no memory for this many bytes.
    #[error("out of memory: {bytes} bytes")]
    OutOfMemory {
        /// Size of the request in bytes.
        bytes: usize,
    },
    /// A limit that the user set for what a query may take.
    #[error("{0}")]
    LimitExceeded(String),
    /// A host function that was called back (block codec, page read) failed.
    #[error("host: {0}")]
    Host(String),
    /// The host's own error, on its way back to the host.
    #[error("{message}")]
    FromHost {
        /// The host's number for it.
        code: i32,
        /// The host's words.
        message: String,
    },
}

impl Error {
    /// A `Corrupt` error whose place is not known yet.
    pub fn corrupt(detail: impl Into<String>) -> Self {
        Self::Corrupt { location: Location::default(), detail: detail.into() }
    }

    /// The same error with column and chunk filled in if they were unknown.
    #[must_use]
    pub fn at(self, column: Option<u32>, chunk: Option<u32>) -> Self {
        match self {
            Self::Corrupt { location, detail } => Self::Corrupt {
                location: Location {
                    column: location.column.or(column),
                    chunk: location.chunk.or(chunk),
                    ..location
                },
                detail,
            },
            other => other,
        }
    }

    /// The same error with the host's number of the table and the first row number of the stripe.
    #[must_use]
    pub fn in_stripe(self, table: u32, first_row: u64) -> Self {
        match self {
            Self::Corrupt { location, detail } => {
                Self::Corrupt { location: Location { stripe: Some((table, first_row)), ..location }, detail }
            }
            other => other,
        }
    }
}
