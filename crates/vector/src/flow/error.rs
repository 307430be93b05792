//! What can go wrong between a source and the end of a plan, and what the host does about it.

/// Result with the error of what runs.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors that SQL defines. The host has the texts and codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlError {
    /// smallint out of range.
    SmallintOutOfRange,
    /// integer out of range.
    IntegerOutOfRange,
    /// bigint out of range.
    BigintOutOfRange,
    /// Float too large.
    FloatOverflow,
    /// Float too small.
    FloatUnderflow,
    /// date out of range.
    DateOutOfRange,
    /// timestamp out of range.
    TimestampOutOfRange,
    /// division by zero.
    DivisionByZero,
    /// negative substring length not allowed.
    NegativeSubstringLength,
}

/// Everything that ends a plan early.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Stored bytes are bad, memory is short, or a host function failed.
    #[error(transparent)]
    Data(#[from] crate::Error),
    /// Values came that are outside what is implemented exactly (a numeric that needs more than 128 bits, NaN
    /// in a numeric). The host runs the query itself.
    #[error("declined: {0}")]
    Decline(&'static str),
    /// The query has an error of its own. The host repeats the query with its own executor, which reports the
    /// error in its own words. It does not if rows were handed out already.
    #[error("{0:?}")]
    Sql(SqlError),
    /// The host wants the query to end; it knows why.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Memory for this many bytes could not be had.
    pub const fn out_of_memory(bytes: usize) -> Self {
        Self::Data(crate::Error::OutOfMemory { bytes })
    }
}
