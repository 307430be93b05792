//! Types whose order or equality is not built in.
//!
//! Built-in functions of arrays, ranges and rows, GREATEST and the like look up by the type how its values
//! are compared. So they may call functions of an operator class that a user has made.
//!
//! Asked by `calls`, and by code that would call such a function where the server's executor might not.

use pgrx::PgList;
use pgrx::pg_sys::{self, Node, NodeTag, Oid};

/// Whether comparing or hashing values of a type, or of its parts, calls functions that are not built in. For
/// rows without a type this is not known.
///
/// # Safety
/// A type; catalog look-ups under guard.
pub unsafe fn is_of(kind: Oid) -> bool {
    // SAFETY: the caller's promise; entries of the type cache live as long as the session, and the columns of
    // one at least as long as nothing else is looked up: numbers are copied first.
    unsafe {
        let kind = pg_sys::getBaseType(kind);
        let element = pg_sys::get_element_type(kind);
        if element != Oid::INVALID {
            return is_of(element);
        }
        match pg_sys::get_typtype(kind) as u8 {
            pg_sys::TYPTYPE_RANGE => {
                // A range names its own operator class.
                let known = &*pg_sys::lookup_type_cache(kind, pg_sys::TYPECACHE_RANGE_INFO as i32);
                let own = [&known.rng_cmp_proc_finfo, &known.rng_canonical_finfo];
                own.into_iter().any(|function| function.fn_oid.to_u32() >= pg_sys::FirstNormalObjectId)
                    || is_of(pg_sys::get_range_subtype(kind))
            }
            pg_sys::TYPTYPE_MULTIRANGE => is_of(pg_sys::get_multirange_range(kind)),
            // `domain_in` and similar functions get the type as a value.
            pg_sys::TYPTYPE_PSEUDO => {
                !matches!(kind, pg_sys::RECORDOID | pg_sys::CSTRINGOID | pg_sys::VOIDOID | pg_sys::UNKNOWNOID)
            }
            pg_sys::TYPTYPE_COMPOSITE if kind.to_u32() < pg_sys::FirstNormalObjectId => false,
            pg_sys::TYPTYPE_COMPOSITE => {
                let columns = (*pg_sys::lookup_type_cache(kind, pg_sys::TYPECACHE_TUPDESC as i32)).tupDesc;
                if columns.is_null() {
                    return true;
                }
                let count = usize::try_from((*columns).natts).unwrap_or(0);
                let columns = std::slice::from_raw_parts((*columns).attrs.as_ptr(), count);
                let columns = columns.iter().filter(|column| !column.attisdropped);
                columns.map(|column| column.atttypid).collect::<Vec<_>>().into_iter().any(|kind| is_of(kind))
            }
            _ => {
                let flags = pg_sys::TYPECACHE_EQ_OPR
                    | pg_sys::TYPECACHE_CMP_PROC
                    | pg_sys::TYPECACHE_HASH_PROC
                    | pg_sys::TYPECACHE_HASH_EXTENDED_PROC;
                let known = &*pg_sys::lookup_type_cache(kind, flags as i32);
                [known.eq_opr, known.cmp_proc, known.hash_proc, known.hash_extended_proc]
                    .into_iter()
                    .any(|found| found.to_u32() >= pg_sys::FirstNormalObjectId)
            }
        }
    }
}

/// Whether this part of an expression itself compares or hashes by an operator class that is not built in.
/// Its operators do not show this.
///
/// # Safety
/// A valid node.
pub unsafe fn compares(node: *mut Node) -> bool {
    // SAFETY: casts follow the tag; families are a list of Oids.
    unsafe {
        match (*node).type_ {
            NodeTag::T_ScalarArrayOpExpr => {
                let test = &*node.cast::<pg_sys::ScalarArrayOpExpr>();
                test.hashfuncid.to_u32() >= pg_sys::FirstNormalObjectId
            }
            NodeTag::T_RowCompareExpr => {
                let families = (*node.cast::<pg_sys::RowCompareExpr>()).opfamilies;
                let families = PgList::<Oid>::from_pg(families);
                families.iter_oid().any(|family| family.to_u32() >= pg_sys::FirstNormalObjectId)
            }
            _ => false,
        }
    }
}
