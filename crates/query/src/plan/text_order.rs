//! How texts are compared.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use vector::LogicalType;

/// Compares two texts. Callable on any thread.
pub type TextCompare = dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync;

/// How values of a sort key compare. Other types than text have one order, `vector::LogicalType`'s.
#[derive(Clone)]
pub enum TextOrder {
    /// Bytewise: the C collation.
    Bytes,
    /// As the host says.
    Host(Arc<TextCompare>),
}

impl TextOrder {
    /// The order of two texts.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytes => a.cmp(b),
            Self::Host(compare) => compare(a, b),
        }
    }

    /// Whether it orders values of this type: the host says how any bytes compare.
    pub fn is_of(&self, logical: LogicalType) -> bool {
        logical.is_ordered() || matches!(self, Self::Host(_)) && logical == LogicalType::Bytes
    }
}

impl fmt::Debug for TextOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "Bytes",
            Self::Host(_) => "Host",
        })
    }
}

/// Two orders of the host's are the same only where they are one.
impl PartialEq for TextOrder {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes, Self::Bytes) => true,
            (Self::Host(a), Self::Host(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}
