//! What a stripe records about the order of its rows: a mark for the first key that they are sorted by, one
//! for the first two keys, and so on.
//!
//! Writers that sort ask for the marks of their keys and put them into the stripe's summary
//! (`stripe::with_orders`). Code that wants to know whether a stripe is sorted by some keys asks for the mark
//! of all of them.
//!
//! A mark is a checksum of everything that decides about the order:
//! - column numbers, and the places of NULLs
//! - operators and their families
//! - collations with their versions
//! - what makes up types that share an operator
//!
//! So a mark that is found is true whatever was altered since, and the mark of another order is never found.
//!
//! Invariant: the rows of a stripe, dead ones included, are sorted as its marks say. Only packing and advice
//! rely on it.

use std::fmt::Write;

use pgrx::pg_sys::{self, Oid};
use stripe::Summary;

use super::StripeEntry;
use crate::compat;
use crate::host::error;
use crate::host::relation::Open;
use crate::options::{SortKey, orderby};

/// How deep types inside types are looked into.
const DEPTH: usize = 16;

/// The marks of rows that are sorted by `keys`. The last mark is that of all keys. Without keys there is
/// none.
pub fn of(rel: Open, keys: &[SortKey]) -> Vec<u64> {
    let mut text = String::new();
    let marks = keys.iter().map(|key| {
        // The keys are columns of it.
        describe_key(rel, key, &mut text);
        stripe::checksum(text.as_bytes())
    });
    marks.collect()
}

/// Whether a stripe is marked as sorted by the keys that have the mark `wanted`.
pub fn has(rel: Open, entry: &StripeEntry, wanted: u64) -> bool {
    match Summary::open(&entry.summary).and_then(|summary| summary.orders()) {
        Ok(marks) => marks.contains(&wanted),
        Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
    }
}

/// The row of the directory for a stripe whose rows are in this order. It replaces other marks.
pub fn put(rel: Open, entry: StripeEntry, marks: &[u64]) -> StripeEntry {
    match stripe::with_orders(&entry.summary, marks) {
        Ok(summary) => StripeEntry { summary, ..entry },
        Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
    }
}

fn describe_key(rel: Open, key: &SortKey, out: &mut String) {
    let at = usize::try_from(key.attnum - 1).unwrap_or(0);
    let Some(attribute) = rel.columns().get(at) else { error::internal("a sort key is no column") };
    // SAFETY: look-ups in catalogs, which may raise an ERROR.
    unsafe {
        let operator = orderby::sort_operator(attribute.atttypid, key);
        let nulls = if key.nulls_first { "first" } else { "last" };
        let (mut family, mut kind, mut strategy) = (Oid::INVALID, Oid::INVALID, 0);
        pg_sys::get_ordering_op_properties(operator, &raw mut family, &raw mut kind, &raw mut strategy);
        // Writing to a String does not fail.
        let _ = write!(out, "{} {} of {} nulls {nulls}", key.attnum, operator.to_u32(), family.to_u32());
        if attribute.attcollation != Oid::INVALID {
            describe_collation(attribute.attcollation, out);
        }
        let (mut left, mut right) = (Oid::INVALID, Oid::INVALID);
        pg_sys::op_input_types(operator, &raw mut left, &raw mut right);
        if pg_sys::get_typtype(left) as u8 == pg_sys::TYPTYPE_PSEUDO {
            describe_type(attribute.atttypid, DEPTH, out);
        }
        out.push(';');
    }
}

/// Describes a collation, with the version of its library's order as the server knows it.
fn describe_collation(collation: Oid, out: &mut String) {
    // SAFETY: look-ups in catalogs.
    unsafe {
        let (cache, key, column) = if collation == pg_sys::DEFAULT_COLLATION_OID {
            let column = pg_sys::Anum_pg_database_datcollversion;
            (pg_sys::SysCacheIdentifier::DATABASEOID, pg_sys::MyDatabaseId, column)
        } else {
            (pg_sys::SysCacheIdentifier::COLLOID, collation, pg_sys::Anum_pg_collation_collversion)
        };
        let _ = write!(out, " collation {}", collation.to_u32());
        let tuple = pg_sys::SearchSysCache1(cache as i32, key.into());
        if tuple.is_null() {
            return;
        }
        let mut null = true;
        let version = pg_sys::SysCacheGetAttr(cache as i32, tuple, column as i16, &raw mut null);
        if !null {
            let version = std::ffi::CStr::from_ptr(pg_sys::text_to_cstring(version.cast_mut_ptr()));
            let _ = write!(out, " version {}", version.to_string_lossy());
        }
        pg_sys::ReleaseSysCache(tuple);
    }
}

/// Describes a type whose operators are those of its kind: an array, a range, an enum or a composite type.
/// What such a type is made of may change.
fn describe_type(kind: Oid, depth: usize, out: &mut String) {
    // SAFETY: look-ups in catalogs; the row type is a copy.
    unsafe {
        let kind = pg_sys::getBaseType(kind);
        let _ = write!(out, " type {}", kind.to_u32());
        if depth == 0 {
            return;
        }
        let element = pg_sys::get_element_type(kind);
        if element != Oid::INVALID {
            describe_type(element, depth - 1, out);
        }
        if pg_sys::get_typtype(kind) as u8 == pg_sys::TYPTYPE_COMPOSITE {
            let desc = pg_sys::lookup_rowtype_tupdesc_copy(kind, -1);
            for attribute in compat::attributes(desc).iter().filter(|attribute| !attribute.attisdropped) {
                let _ = write!(out, " ({} {}", attribute.attnum, attribute.attcollation.to_u32());
                describe_type(attribute.atttypid, depth - 1, out);
                out.push(')');
            }
            pg_sys::FreeTupleDesc(desc);
        }
    }
}
