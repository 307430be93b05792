//! Which types of the server are understood, and for what.
//!
//! A value of any type can flow through a plan; this table says where `query` may look at it. Equality, order
//! and hash of a `vector::LogicalType` are documented there. So a type is on a list here only where the
//! server's own operator class means the same. Invariant: a type that is not listed is declined.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use pgrx::pg_sys::{self, Oid};
use query::TextOrder;
use vector::LogicalType;

use super::decline;
use crate::convert::ColumnType;
use crate::host::catalogs;
use crate::host::collation::orders_bytewise;
use crate::host::encoding;
use crate::host::icu;
use crate::host::own_type;
use crate::host::tree::Node;
use crate::vectorised::translated::{OutputColumn, Reason};

/// Type, modifier and collation of an expression's value, looking through domains.
pub fn column_of(node: Node<'_>) -> OutputColumn {
    OutputColumn { type_oid: node.type_oid(), typmod: node.typmod(), collation: node.collation() }
}

/// The type of the elements of an array type; none of any other.
pub fn element_of(array: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_element_type(array) }
}

/// The type below domains, with its modifier.
pub fn base_of(column: OutputColumn) -> (Oid, i32) {
    let mut typmod = column.typmod;
    // SAFETY: a catalog look-up.
    (unsafe { pg_sys::getBaseTypeAndTypmod(column.type_oid, &raw mut typmod) }, typmod)
}

/// How vectors hold values of this type.
pub fn logical(type_oid: Oid) -> LogicalType {
    // SAFETY: a catalog look-up; types of a plan exist.
    unsafe { ColumnType::of_type(type_oid).logical }
}

/// True where texts of this collation are equal exactly when their bytes are.
pub fn is_deterministic(collation: Oid) -> bool {
    // SAFETY: a catalog look-up.
    collation != pg_sys::InvalidOid && unsafe { pg_sys::get_collation_isdeterministic(collation) }
}

/// True for types whose equality and order are the same in `query` and the server, with every modifier and
/// collation.
const fn is_plain(base: Oid) -> bool {
    matches!(
        base,
        pg_sys::BOOLOID
            | pg_sys::INT2OID
            | pg_sys::INT4OID
            | pg_sys::INT8OID
            | pg_sys::FLOAT4OID
            | pg_sys::FLOAT8OID
            | pg_sys::NUMERICOID
            | pg_sys::DATEOID
            | pg_sys::TIMEOID
            | pg_sys::TIMESTAMPOID
            | pg_sys::TIMESTAMPTZOID
            | pg_sys::MONEYOID
            | pg_sys::UUIDOID
    )
}

/// Whether two values of this type are equal exactly where `query` says so: grouping, DISTINCT and hash
/// joins.
pub fn can_equal(column: OutputColumn) -> Result<(), Reason> {
    let (base, typmod) = base_of(column);
    match base {
        _ if is_plain(base) || own_type::is_uint8(base) => Ok(()),
        pg_sys::OIDOID | pg_sys::CHAROID | pg_sys::BYTEAOID | pg_sys::MACADDROID => Ok(()),
        pg_sys::BITOID | pg_sys::VARBITOID => Ok(()),
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::NAMEOID if is_deterministic(column.collation) => {
            Ok(())
        }
        // All values of a column are padded to one length; without one, blanks at the end would count.
        pg_sys::BPCHAROID if typmod > 0 && is_deterministic(column.collation) => Ok(()),
        // SAFETY: a catalog look-up. Labels are equal when their numbers are.
        _ if unsafe { pg_sys::type_is_enum(base) } => Ok(()),
        _ => decline("type without a bytewise equality"),
    }
}

/// True when the operator is the `=` of the type's default operator class.
pub fn is_default_equality(column: OutputColumn, operator: Oid) -> bool {
    // SAFETY: a catalog look-up; the entry lives as long as the process.
    unsafe {
        let entry = pg_sys::lookup_type_cache(base_of(column).0, pg_sys::TYPECACHE_EQ_OPR as i32);
        (*entry).eq_opr == operator
    }
}

/// How values of this type are ordered by the server's default operator class.
pub fn order(column: OutputColumn) -> Result<TextOrder, Reason> {
    let (base, typmod) = base_of(column);
    match base {
        _ if is_plain(base) || own_type::is_uint8(base) => Ok(TextOrder::Bytes),
        pg_sys::TEXTOID | pg_sys::VARCHAROID => text_order(column.collation),
        pg_sys::BYTEAOID => Ok(TextOrder::Host(Arc::new(|a, b| a.cmp(b)))),
        pg_sys::BPCHAROID if typmod > 0 => match text_order(column.collation)? {
            TextOrder::Bytes => Ok(TextOrder::Host(Arc::new(|a, b| trimmed(a).cmp(trimmed(b))))),
            TextOrder::Host(compare) => {
                Ok(TextOrder::Host(Arc::new(move |a, b| compare(trimmed(a), trimmed(b)))))
            }
        },
        _ => decline("type without an order of its own"),
    }
}

/// The server ignores blanks at the end of char(n).
fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    text.get(..end).unwrap_or(text)
}

unsafe extern "C" {
    fn strcoll(a: *const c_char, b: *const c_char) -> c_int;
    fn strcoll_l(a: *const c_char, b: *const c_char, locale: *mut c_void) -> c_int;
}

/// Bytes that are copied to the stack.
const SHORT: usize = 128;

/// The text with a zero byte at its end, in `short` (all zeros) where it has room there.
fn terminated<'a>(text: &[u8], short: &'a mut [u8; SHORT], long: &'a mut Vec<u8>) -> &'a [u8] {
    match short.get_mut(..text.len()).filter(|_| text.len() < SHORT) {
        Some(place) => {
            place.copy_from_slice(text);
            short
        }
        None => {
            long.reserve_exact(text.len() + 1);
            long.extend_from_slice(text);
            long.push(0);
            long
        }
    }
}

/// A C library's locale; null: the process's own.
struct Locale(*mut c_void);
// SAFETY: a locale is read only, and lives as long as the process: the server keeps it for good.
unsafe impl Send for Locale {}
// SAFETY: comparing texts by a locale only reads it.
unsafe impl Sync for Locale {}

impl Locale {
    /// The server's order of two texts: the library's, and bytewise where that calls different texts equal.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        // Short ones, as most are, without a call for memory.
        let (mut left, mut right) = ([0; SHORT], [0; SHORT]);
        let (mut long_left, mut long_right) = (Vec::new(), Vec::new());
        let left = terminated(a, &mut left, &mut long_left);
        let right = terminated(b, &mut right, &mut long_right);
        // SAFETY: both end with a zero byte; comparing only reads the locale.
        let verdict = unsafe {
            match self.0.is_null() {
                true => strcoll(left.as_ptr().cast(), right.as_ptr().cast()),
                false => strcoll_l(left.as_ptr().cast(), right.as_ptr().cast(), self.0),
            }
        };
        verdict.cmp(&0).then_with(|| a.cmp(b))
    }
}

/// The order of text under a collation.
pub fn text_order(collation: Oid) -> Result<TextOrder, Reason> {
    if !is_deterministic(collation) {
        return decline("non-deterministic collation");
    }
    // SAFETY: catalog look-ups.
    unsafe {
        if orders_bytewise(collation) {
            return Ok(TextOrder::Bytes);
        }
        match catalogs::locale(collation) {
            catalogs::Locale::C(locale) => {
                let locale = Locale(locale);
                Ok(TextOrder::Host(Arc::new(move |a, b| locale.compare(a, b))))
            }
            catalogs::Locale::Icu(collator) if encoding::is_utf8() => {
                let Some(collator) = icu::Collator::new(collator) else {
                    return decline("no library of ICU");
                };
                Ok(TextOrder::Host(Arc::new(move |a, b| collator.compare(a, b))))
            }
            _ => decline("collation of a provider that is not known"),
        }
    }
}
