//! The type `engine.uint8` in the catalogs of a database.
//!
//! It is asked for by name each time: the extension may be dropped and created again while a session lasts.
//! Only a superuser makes C functions, and the schema `engine` is the extension's. So a C function there is
//! one of ours, which does as its name says.

use pgrx::pg_sys::{self, Oid};

/// The language `c` (pg_language.dat).
const C_LANGUAGE: u32 = 13;

/// Whether a type is `engine.uint8`.
pub fn is_uint8(kind: Oid) -> bool {
    !is_built_in(kind) && schema().is_some_and(|schema| uint8_of(schema) == kind)
}

/// The operator family that orders values of the type and its like; none if the database does not have it.
pub fn uint8_family() -> Option<Oid> {
    let schema = schema()?;
    // SAFETY: a catalog look-up.
    let found = unsafe {
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::OPFAMILYAMNAMENSP as i32,
            pg_sys::Anum_pg_opfamily_oid as i16,
            pg_sys::BTREE_AM_OID.into(),
            pg_sys::Datum::from(c"uint8_ops".as_ptr()),
            schema.into(),
            pg_sys::Datum::null(),
        )
    };
    (found != Oid::INVALID).then_some(found)
}

/// Whether a function is one of ours: written in C, in our schema.
pub fn is_own_function(function: Oid) -> bool {
    !is_built_in(function)
        && of_function(function, |row| (row.pronamespace, row.prolang)).is_some_and(
            |(schema_of, language)| schema() == Some(schema_of) && language.to_u32() == C_LANGUAGE,
        )
}

/// The name of a function or aggregate that takes one value of the type: in our schema or the server's, where
/// only superusers make any.
pub fn uint8_function(function: Oid) -> Option<String> {
    if is_built_in(function) {
        return None;
    }
    let (place, name, arguments) = of_function(function, |row| {
        // SAFETY: a name ends with a zero; the row's first argument type is there if it has one.
        unsafe {
            let name = std::ffi::CStr::from_ptr(row.proname.data.as_ptr()).to_string_lossy().into_owned();
            let types: &[Oid] = row.proargtypes.values.as_slice(usize::from(row.pronargs.unsigned_abs()));
            (row.pronamespace, name, types.to_vec())
        }
    })?;
    let schema = schema()?;
    let is_ours = (place == schema || place == Oid::from(pg_sys::PG_CATALOG_NAMESPACE))
        && arguments == [uint8_of(schema)];
    is_ours.then_some(name)
}

fn is_built_in(oid: Oid) -> bool {
    oid.to_u32() < pg_sys::FirstNormalObjectId
}

fn schema() -> Option<Oid> {
    // SAFETY: a catalog look-up.
    let schema = unsafe { pg_sys::get_namespace_oid(c"engine".as_ptr(), true) };
    (schema != Oid::INVALID).then_some(schema)
}

fn uint8_of(schema: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe {
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::TYPENAMENSP as i32,
            pg_sys::Anum_pg_type_oid as i16,
            pg_sys::Datum::from(c"uint8".as_ptr()),
            schema.into(),
            pg_sys::Datum::null(),
            pg_sys::Datum::null(),
        )
    }
}

/// What `take` says of a function's row in the catalog.
fn of_function<T>(function: Oid, take: impl FnOnce(&pg_sys::FormData_pg_proc) -> T) -> Option<T> {
    // SAFETY: a catalog look-up; the row is there until it is released.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::PROCOID as i32, function.into());
        if tuple.is_null() {
            return None;
        }
        let taken = take(&*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_proc>(tuple));
        pg_sys::ReleaseSysCache(tuple);
        Some(taken)
    }
}
