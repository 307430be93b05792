//! What can be wrong with a file.

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system says no.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The bytes are not what the format wants.
    #[error("{0}")]
    Malformed(String),
    /// The format allows it, and it is not done here.
    #[error("{0}")]
    Unsupported(String),
}

impl From<::parquet::errors::ParquetError> for Error {
    fn from(error: ::parquet::errors::ParquetError) -> Self {
        match error {
            ::parquet::errors::ParquetError::NYI(what) => Self::Unsupported(what),
            other => Self::Malformed(other.to_string()),
        }
    }
}
