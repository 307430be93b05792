//! How single values of the server go into a Parquet file: as what they are, or as text.
//!
//! JSON is text that says that it is JSON. Types without a counterpart in Parquet (ranges, types of users)
//! become text, as their output functions write it. So do texts of a database whose encoding is not UTF-8.
//! Lists and structs consist of such values (`shred`).

use std::ffi::CStr;

use files::FieldKind;
use files::column::Column;
use files::parquet::field;
use pgrx::pg_sys::{self, Datum, Oid};
use vector::{LogicalType, Vector, VectorBuilder};

use crate::convert::{ColumnType, ColumnWriter, is_plain};
use crate::host::{encoding, error};

/// Digits of numerics whose type says none: before and after the point.
const NUMERIC: &str = "numeric(38,9)";

/// The type that holds Parquet's unsigned integers.
const UINT8: &str = "engine.uint8";

/// Gathers single values for a file.
pub enum Gathered {
    /// As they are.
    Own(Box<ColumnWriter>),
    /// As text.
    Text { builder: VectorBuilder, output: Oid, bytes: usize },
}

/// What values of a type are in a file, and what gathers them. The type is no domain.
///
/// # Safety
/// A type, and a modifier of it or -1.
pub unsafe fn single(type_oid: Oid, modifier: i32) -> (FieldKind, Gathered) {
    // SAFETY: the caller's promise; catalog look-ups.
    unsafe {
        let kind = ColumnType::of_type(type_oid);
        let is_uint8 = kind.logical == LogicalType::UInt64;
        let own = if is_uint8 { Some(UINT8.into()) } else { declared(type_oid, modifier) };
        if let Some(declared) = own {
            let column = Column { number: 1, name: String::new(), declared, logical: kind.logical };
            if let Ok(field) = field(&column) {
                return (field.kind, Gathered::Own(Box::new(ColumnWriter::new(kind))));
            }
        }
        let (mut output, mut is_varlena) = (pg_sys::InvalidOid, false);
        pg_sys::getTypeOutputInfo(type_oid, &raw mut output, &raw mut is_varlena);
        let is_json = matches!(type_oid, pg_sys::JSONOID | pg_sys::JSONBOID);
        let kind = if is_json { FieldKind::Json } else { FieldKind::Text };
        (kind, Gathered::Text { builder: VectorBuilder::new(LogicalType::Text), output, bytes: 0 })
    }
}

/// The words for a type that has a counterpart in Parquet.
unsafe fn declared(base: Oid, modifier: i32) -> Option<String> {
    // SAFETY: plain calls into the server.
    unsafe {
        let modifier = match base {
            pg_sys::NUMERICOID if modifier < 0 => return Some(NUMERIC.into()),
            pg_sys::NUMERICOID => modifier,
            pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID if !encoding::is_utf8() => return None,
            base if is_plain(base) => -1,
            _ => return None,
        };
        let words = pg_sys::format_type_with_typemod(base, modifier);
        Some(CStr::from_ptr(words).to_string_lossy().into_owned())
    }
}

impl Gathered {
    /// Adds a value. Memory is taken of the current context.
    ///
    /// # Safety
    /// A value of the type.
    pub unsafe fn push(&mut self, value: Option<Datum>) {
        // SAFETY: the caller's promise.
        unsafe {
            match (self, value) {
                (Self::Own(writer), value) => {
                    writer.push_value(value.unwrap_or(Datum::null()), value.is_none());
                }
                (Self::Text { builder, .. }, None) => builder.push_null(),
                (Self::Text { builder, output, bytes }, Some(value)) => {
                    let text = pg_sys::OidOutputFunctionCall(*output, value);
                    let told = encoding::to_utf8(CStr::from_ptr(text));
                    *bytes += told.len();
                    if !builder.push_bytes(told.as_bytes()) {
                        error::internal("text past 4 GiB in a row group");
                    }
                }
            }
        }
    }

    /// Whether a value takes memory of the current context.
    pub const fn allocates(&self) -> bool {
        matches!(self, Self::Text { .. })
    }

    /// Bytes that its values take, about.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Own(writer) => writer.bytes(),
            Self::Text { bytes, .. } => *bytes,
        }
    }

    /// The values that were gathered.
    pub fn take(&mut self) -> Vector {
        match self {
            Self::Own(writer) => writer.take(),
            Self::Text { builder, bytes, .. } => {
                *bytes = 0;
                let full = std::mem::replace(builder, VectorBuilder::new(LogicalType::Text));
                full.finish(&|_, _, _| Box::default())
            }
        }
    }
}
