//! Types whose order or equality is not built in.
//!
//! Built-in functions of arrays, ranges and rows, GREATEST and the like look up by the type how its values
//! are compared. So they may call functions of an operator class that a user has made.
//!
//! Asked by `calls`, and by code that would call such a function where the server's executor might not.

use pgrx::pg_sys::{self, Oid};

use crate::compat;
use crate::host::own_type;
use crate::host::tree::{Expression, Node};

/// Whether comparing or hashing values of a type, or of what it is made of, calls functions that are not
/// built in. Of rows without a type that is not known.
pub fn is_of(kind: Oid) -> bool {
    // SAFETY: catalog look-ups.
    let (kind, element) = unsafe {
        let kind = pg_sys::getBaseType(kind);
        (kind, pg_sys::get_element_type(kind))
    };
    if element != Oid::INVALID {
        return is_of(element);
    }
    // SAFETY: a catalog look-up.
    match unsafe { pg_sys::get_typtype(kind) } as u8 {
        pg_sys::TYPTYPE_RANGE => is_of_range(kind),
        // SAFETY: a catalog look-up.
        pg_sys::TYPTYPE_MULTIRANGE => is_of(unsafe { pg_sys::get_multirange_range(kind) }),
        // `domain_in` and similar functions get the type as a value.
        pg_sys::TYPTYPE_PSEUDO => {
            !matches!(kind, pg_sys::RECORDOID | pg_sys::CSTRINGOID | pg_sys::VOIDOID | pg_sys::UNKNOWNOID)
        }
        pg_sys::TYPTYPE_COMPOSITE if is_built_in(kind) => false,
        pg_sys::TYPTYPE_COMPOSITE => columns_of(kind).is_none_or(|columns| columns.into_iter().any(is_of)),
        _ => is_of_class(kind),
    }
}

fn is_built_in(oid: Oid) -> bool {
    oid.to_u32() < pg_sys::FirstNormalObjectId
}

/// Of a range, which has an operator class of its own.
fn is_of_range(kind: Oid) -> bool {
    // SAFETY: catalog look-ups; an entry of the type cache lives as long as the session.
    let (own, over) = unsafe {
        let known = &*pg_sys::lookup_type_cache(kind, pg_sys::TYPECACHE_RANGE_INFO as i32);
        let own = [known.rng_cmp_proc_finfo.fn_oid, known.rng_canonical_finfo.fn_oid];
        (own, pg_sys::get_range_subtype(kind))
    };
    !own.into_iter().all(is_built_in) || is_of(over)
}

/// The types of the columns of a composite type; None where it has none that are known.
fn columns_of(kind: Oid) -> Option<Vec<Oid>> {
    // SAFETY: catalog look-ups. The columns of an entry of the type cache live at least as long as nothing
    // else is looked up: numbers are copied first.
    unsafe {
        let columns = (*pg_sys::lookup_type_cache(kind, pg_sys::TYPECACHE_TUPDESC as i32)).tupDesc;
        let columns = columns.as_ref()?;
        let columns = compat::attributes(std::ptr::from_ref(columns).cast_mut());
        Some(columns.iter().filter(|column| !column.attisdropped).map(|column| column.atttypid).collect())
    }
}

/// Of any other type, by its default operator classes. Those of our own type are as good as built in.
fn is_of_class(kind: Oid) -> bool {
    if own_type::is_uint8(kind) {
        return false;
    }
    let flags = pg_sys::TYPECACHE_EQ_OPR
        | pg_sys::TYPECACHE_CMP_PROC
        | pg_sys::TYPECACHE_HASH_PROC
        | pg_sys::TYPECACHE_HASH_EXTENDED_PROC;
    // SAFETY: a catalog look-up; an entry of the type cache lives as long as the session.
    let known = unsafe { &*pg_sys::lookup_type_cache(kind, flags as i32) };
    let found = [known.eq_opr, known.cmp_proc, known.hash_proc, known.hash_extended_proc];
    !found.into_iter().all(is_built_in)
}

/// Whether a part of an expression itself compares or hashes by an operator class that is not built in, which
/// its operators do not show.
pub fn compares(node: Node<'_>) -> bool {
    match node.expression() {
        Expression::ScalarArrayOpExpr(test) => {
            !is_built_in(test.hashfuncid) && !own_type::is_own_function(test.hashfuncid)
        }
        Expression::RowCompareExpr(rows) => !rows.families().iter().all(is_built_in),
        _ => false,
    }
}
