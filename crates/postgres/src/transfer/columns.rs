//! How values of a column of the server go into a Parquet file: as what they are, or as text.
//!
//! Types without a counterpart in Parquet (json, arrays, ranges, types of users) become text, as their output
//! functions write it. So do texts of a database whose encoding is not UTF-8.

use std::ffi::CStr;

use files::Field;
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

/// Gathers values of a column for a file.
pub enum Gathered {
    /// As they are.
    Own(Box<ColumnWriter>),
    /// As text.
    Text { builder: VectorBuilder, output: Oid, bytes: usize },
}

/// What a column is in a file, and what gathers its values.
///
/// # Safety
/// An attribute of a row type.
pub unsafe fn column(attribute: &pg_sys::FormData_pg_attribute) -> (Field, Gathered) {
    // SAFETY: the caller's promise; catalog look-ups.
    unsafe {
        let name = encoding::to_utf8(CStr::from_ptr(attribute.attname.data.as_ptr())).into_owned();
        let kind = ColumnType::of(attribute);
        let is_uint8 = kind.logical == LogicalType::UInt64;
        let own = if is_uint8 { Some(UINT8.into()) } else { declared(kind.type_oid, attribute.atttypmod) };
        if let Some(declared) = own {
            let column = Column { number: 1, name: name.clone(), declared, logical: kind.logical };
            if let Ok(field) = field(&column) {
                return (field, Gathered::Own(Box::new(ColumnWriter::new(kind))));
            }
        }
        let (mut output, mut is_varlena) = (pg_sys::InvalidOid, false);
        pg_sys::getTypeOutputInfo(attribute.atttypid, &raw mut output, &raw mut is_varlena);
        let builder = VectorBuilder::new(LogicalType::Text);
        (Field { name, kind: files::FieldKind::Text }, Gathered::Text { builder, output, bytes: 0 })
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
    /// Adds a value.
    ///
    /// # Safety
    /// A value of the column.
    pub unsafe fn push(&mut self, value: Datum, is_null: bool) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Own(writer) => writer.push_value(value, is_null),
                Self::Text { builder, .. } if is_null => builder.push_null(),
                Self::Text { builder, output, bytes } => {
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
