//! Which logical type the values of a column get, and how the server holds them.
//!
//! Called once per column when a table is opened for writing or reading. The logical type decides about
//! statistics and comparisons. So a type becomes an ordered one only if its default btree operators have the
//! order that `vector::LogicalType` documents. `oid` and `xid8` are unsigned and enums sort by catalog, so
//! they are opaque fixed bytes here.
//!
//! Invariant: `shape` alone says how a Datum is built. So a column that changed between binary-compatible
//! types (integer to oid) still reads stripes that were written before.

use std::cell::RefCell;

use pgrx::pg_sys::{self, Oid};
use vector::LogicalType;

use crate::compat;
use crate::host::numbers::NumberMap;
use crate::host::own_type;

/// How the server holds a value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// In the Datum itself: 1, 2, 4 or 8 bytes, sign-extended.
    ByValue(u8),
    /// In the Datum itself: an unsigned integer of 8 bytes, of which vectors hold what stands for it
    /// (`vector::held`).
    Unsigned,
    /// A pointer to this many bytes.
    Fixed(u16),
    /// A pointer to a value with a length word.
    Varlena {
        /// The value starts on an 8-byte border (arrays of bigint and the like).
        align8: bool,
        /// The server would store a short value with a one-byte length, and its functions accept that without
        /// a copy.
        short: bool,
    },
    /// A pointer to bytes that end with a zero byte.
    CString,
}

/// What the conversion of a column's values needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnType {
    /// What its vectors mean.
    pub logical: LogicalType,
    /// How its Datums look.
    pub shape: Shape,
    /// Type of the values: that of the column, or below its domains. `InvalidOid` for a dropped column.
    pub type_oid: Oid,
}

impl ColumnType {
    /// The type of one column. A dropped column gets a type, too: it keeps its place and is NULL everywhere.
    pub unsafe fn of(attribute: &pg_sys::FormData_pg_attribute) -> Self {
        if attribute.attisdropped {
            return Self {
                logical: LogicalType::FixedBytes(1),
                shape: Shape::ByValue(1),
                type_oid: Oid::INVALID,
            };
        }
        let type_oid = match attribute.atttypid.to_u32() < pg_sys::FirstGenbkiObjectId {
            // Types with an OID from the server's source are no domains.
            true => attribute.atttypid,
            // SAFETY: a catalog look-up; an unknown type raises an ERROR.
            false => unsafe { pg_sys::getBaseType(attribute.atttypid) },
        };
        let shape = shape_of(attribute, type_oid);
        Self { logical: logical_of(type_oid, shape), shape, type_oid }
    }

    /// The type of a computed column. Types with an OID from the server's source are looked up only once.
    pub unsafe fn of_type(type_oid: Oid) -> Self {
        thread_local! {
            static KNOWN: RefCell<NumberMap<u32, ColumnType>> = RefCell::new(NumberMap::default());
        }
        let number = type_oid.to_u32();
        if let Some(known) = KNOWN.with_borrow(|known| known.get(&number).copied()) {
            return known;
        }
        // SAFETY: the caller's promise.
        let found = unsafe { Self::of_type_anew(type_oid) };
        if number < pg_sys::FirstGenbkiObjectId {
            KNOWN.with_borrow_mut(|known| known.insert(number, found));
        }
        found
    }

    unsafe fn of_type_anew(type_oid: Oid) -> Self {
        // SAFETY: a descriptor of one attribute, filled in from the catalog; an unknown type raises an ERROR.
        unsafe {
            let descriptor = pg_sys::CreateTemplateTupleDesc(1);
            pg_sys::TupleDescInitEntry(descriptor, 1, std::ptr::null(), type_oid, -1, 0);
            let found = Self::of(&compat::attributes(descriptor)[0]);
            pg_sys::FreeTupleDesc(descriptor);
            found
        }
    }

    /// The types of all columns of a row type, dropped ones included: position = attribute number - 1.
    pub unsafe fn of_all(descriptor: pg_sys::TupleDesc) -> Vec<Self> {
        // SAFETY: the caller keeps the descriptor alive; its array has natts entries.
        unsafe { compat::attributes(descriptor).iter().map(|attribute| Self::of(attribute)).collect() }
    }
}

/// Whether vectors hold a type's values in a form of their own, which is checked when it is decoded. Values
/// of other types are bytes that the server trusts.
pub const fn is_plain(type_oid: Oid) -> bool {
    matches!(
        type_oid,
        pg_sys::BOOLOID
            | pg_sys::INT2OID
            | pg_sys::INT4OID
            | pg_sys::INT8OID
            | pg_sys::FLOAT4OID
            | pg_sys::FLOAT8OID
            | pg_sys::NUMERICOID
            | pg_sys::TEXTOID
            | pg_sys::VARCHAROID
            | pg_sys::BPCHAROID
            | pg_sys::BYTEAOID
            | pg_sys::UUIDOID
            | pg_sys::DATEOID
            | pg_sys::TIMEOID
            | pg_sys::TIMESTAMPOID
            | pg_sys::TIMESTAMPTZOID
    )
}

fn shape_of(attribute: &pg_sys::FormData_pg_attribute, type_oid: Oid) -> Shape {
    match attribute.attlen {
        -1 => Shape::Varlena {
            align8: attribute.attalign == pg_sys::TYPALIGN_DOUBLE as std::ffi::c_char,
            short: attribute.attstorage != pg_sys::TYPSTORAGE_PLAIN as std::ffi::c_char
                && matches!(
                    type_oid,
                    pg_sys::TEXTOID
                        | pg_sys::VARCHAROID
                        | pg_sys::BPCHAROID
                        | pg_sys::BYTEAOID
                        | pg_sys::JSONOID
                ),
        },
        -2 => Shape::CString,
        8 if attribute.attbyval && own_type::is_uint8(type_oid) => Shape::Unsigned,
        len if attribute.attbyval => Shape::ByValue(u8::try_from(len).unwrap_or(8)),
        len => Shape::Fixed(u16::try_from(len).unwrap_or(1).max(1)),
    }
}

fn logical_of(type_oid: Oid, shape: Shape) -> LogicalType {
    match (type_oid, shape) {
        (pg_sys::BOOLOID, Shape::ByValue(1)) => LogicalType::Bool,
        (pg_sys::INT2OID, Shape::ByValue(2)) => LogicalType::Int16,
        (pg_sys::INT4OID, Shape::ByValue(4)) => LogicalType::Int32,
        (pg_sys::INT8OID | pg_sys::TIMEOID | pg_sys::MONEYOID, Shape::ByValue(8)) => LogicalType::Int64,
        (pg_sys::FLOAT4OID, Shape::ByValue(4)) => LogicalType::Float32,
        (pg_sys::FLOAT8OID, Shape::ByValue(8)) => LogicalType::Float64,
        (pg_sys::DATEOID, Shape::ByValue(4)) => LogicalType::Date,
        (pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID, Shape::ByValue(8)) => LogicalType::Timestamp,
        (pg_sys::UUIDOID, Shape::Fixed(16)) => LogicalType::Uuid,
        (pg_sys::NUMERICOID, Shape::Varlena { .. }) => LogicalType::Numeric,
        (pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID, Shape::Varlena { .. }) => {
            LogicalType::Text
        }
        (pg_sys::NAMEOID, Shape::Fixed(_)) => LogicalType::Text,
        (_, Shape::Unsigned) => LogicalType::UInt64,
        (_, Shape::ByValue(width)) => LogicalType::FixedBytes(u16::from(width)),
        (_, Shape::Fixed(width)) => LogicalType::FixedBytes(width),
        (_, Shape::Varlena { .. } | Shape::CString) => LogicalType::Bytes,
    }
}
