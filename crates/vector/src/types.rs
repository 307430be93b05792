//! Logical types: what a value means. The width in which it is held is a `PhysicalType` and may differ by
//! chunk.
//!
//! Equality and order of each type, where bytes alone would be wrong:
//!
//! | type | equality | order |
//! | --- | --- | --- |
//! | Bool, Int*, UInt64, Date, Timestamp | of the integer | of the integer (host infinities are the extreme integers) |
//! | Float32, Float64 | -0 = 0, NaN = NaN | NaN above everything |
//! | Numeric | of the value, display scale ignored | of the value; NaN and infinities only in the side lane |
//! | Uuid, FixedBytes, Text, Bytes | bytewise | bytewise (a host collation may order text otherwise) |

/// What a value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogicalType {
    /// Truth value.
    Bool,
    /// Signed integer, 16 bits.
    Int16,
    /// Signed integer, 32 bits.
    Int32,
    /// Signed integer, 64 bits.
    Int64,
    /// IEEE 754 single.
    Float32,
    /// IEEE 754 double.
    Float64,
    /// Days since the host's epoch, 32 bits. The extremes are the host's infinities.
    Date,
    /// Microseconds since the host's epoch, 64 bits. The extremes are the host's infinities.
    Timestamp,
    /// Sixteen bytes, ordered bytewise.
    Uuid,
    /// Exact decimal: an integer times a power of ten, with a display scale per value.
    Numeric,
    /// Text in the host's encoding. Equality is bytewise.
    Text,
    /// Values of one fixed width in bytes that the format does not interpret.
    FixedBytes(u16),
    /// Values of any width in bytes that the format does not interpret.
    Bytes,
    /// Unsigned integer, 64 bits. It is held less 2^63 as a signed one, so that both have one order.
    UInt64,
}

/// The width and kind that values are held in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhysicalType {
    /// One bit a value.
    Bool,
    /// 16-bit integers.
    Int16,
    /// 32-bit integers.
    Int32,
    /// 64-bit integers.
    Int64,
    /// 32-bit floats.
    Float32,
    /// 64-bit floats.
    Float64,
    /// Values of this many bytes.
    Fixed(u16),
    /// Byte strings.
    Bytes,
    /// Scaled integers with scales and a side lane.
    Numeric,
}

/// The unsigned integer that a signed one stands for in a vector of `LogicalType::UInt64`.
#[inline]
pub const fn unsigned(held: i64) -> u64 {
    held.cast_unsigned() ^ (1 << 63)
}

/// What stands for an unsigned integer in a vector of `LogicalType::UInt64`.
#[inline]
pub const fn held(value: u64) -> i64 {
    (value ^ (1 << 63)).cast_signed()
}

impl LogicalType {
    /// The physical type that builders and decoders use for this logical type.
    pub const fn physical(self) -> PhysicalType {
        match self {
            Self::Bool => PhysicalType::Bool,
            Self::Int16 => PhysicalType::Int16,
            Self::Int32 | Self::Date => PhysicalType::Int32,
            Self::Int64 | Self::Timestamp | Self::UInt64 => PhysicalType::Int64,
            Self::Float32 => PhysicalType::Float32,
            Self::Float64 => PhysicalType::Float64,
            Self::Uuid => PhysicalType::Fixed(16),
            Self::Numeric => PhysicalType::Numeric,
            Self::FixedBytes(width) => PhysicalType::Fixed(width),
            Self::Text | Self::Bytes => PhysicalType::Bytes,
        }
    }

    /// The tag stored in files: stable for ever. A fixed width is stored beside it.
    pub const fn tag(self) -> u8 {
        match self {
            Self::Bool => 1,
            Self::Int16 => 2,
            Self::Int32 => 3,
            Self::Int64 => 4,
            Self::Float32 => 5,
            Self::Float64 => 6,
            Self::Date => 7,
            Self::Timestamp => 8,
            Self::Uuid => 9,
            Self::Numeric => 10,
            Self::Text => 11,
            Self::FixedBytes(_) => 12,
            Self::Bytes => 13,
            Self::UInt64 => 14,
        }
    }

    /// The type for a stored tag and fixed width (0 where the type has none), if known.
    pub const fn from_tag(tag: u8, width: u16) -> Option<Self> {
        Some(match tag {
            1 => Self::Bool,
            2 => Self::Int16,
            3 => Self::Int32,
            4 => Self::Int64,
            5 => Self::Float32,
            6 => Self::Float64,
            7 => Self::Date,
            8 => Self::Timestamp,
            9 => Self::Uuid,
            10 => Self::Numeric,
            11 => Self::Text,
            12 => Self::FixedBytes(width),
            13 => Self::Bytes,
            14 => Self::UInt64,
            _ => return None,
        })
    }

    /// True where minimum and maximum under this type's own order are kept as statistics.
    pub const fn is_ordered(self) -> bool {
        !matches!(self, Self::FixedBytes(_) | Self::Bytes)
    }
}
