//! Our part of `pg_class.reloptions`: reading it, replacing it, leaving the server's own part alone.
//!
//! `reloptions` is an array of texts `name=value`. Those whose name is one of ours form the table's
//! [`Settings`]; the others (fillfactor, autovacuum_*) are the server's and keep their place.
//!
//! Invariant: [`store`] runs while the caller holds a lock on the table that conflicts with itself, and
//! leaves the new row visible to the commands that follow.

use super::access_method::AccessMethod;
use super::definitions::{self, OptionId};
use super::report::{Refusal, text};
use super::settings;
use pgrx::PgLogLevel;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Datum, HeapTuple, Oid};
use std::ffi::{CStr, CString};

/// The options that are set on one table, in stored spelling. Each has at most one value.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Settings(Vec<(OptionId, CString)>);

impl Settings {
    /// The stored value, if set.
    pub fn get(&self, option: OptionId) -> Option<&CStr> {
        self.0.iter().find(|(id, _)| *id == option).map(|(_, value)| value.as_c_str())
    }

    /// Sets a value, in place of the one before.
    pub fn set(&mut self, option: OptionId, value: CString) {
        match self.0.iter_mut().find(|(id, _)| *id == option) {
            Some((_, old)) => *old = value,
            None => self.0.push((option, value)),
        }
    }

    /// Removes a value.
    pub fn reset(&mut self, option: OptionId) {
        self.0.retain(|(id, _)| *id != option);
    }

    /// Removes what tables of this access method do not have. Says whether there was any.
    pub fn keep_of(&mut self, method: AccessMethod) -> bool {
        let before = self.0.len();
        self.0.retain(|(id, _)| id.is_of(method));
        self.0.len() < before
    }

    /// Is nothing set?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All values, in the order they were first set.
    pub fn iter(&self) -> impl Iterator<Item = &(OptionId, CString)> {
        self.0.iter()
    }

    /// Refuses values that contradict each other, for tables of this access method.
    pub fn check(&self, method: AccessMethod) -> Result<(), Refusal> {
        let number = |option| self.get(option).and_then(definitions::integer);
        let Some(chunk) = number(definitions::CHUNK_GROUP_ROW_LIMIT) else { return Ok(()) };
        let (stripe, batch) = (definitions::STRIPE_ROW_LIMIT, definitions::BATCH_SIZE);
        for (option, whole) in [(stripe, "stripe"), (batch, "batch")] {
            if let Some(rows) = number(option).filter(|&rows| chunk > rows) {
                let name = option.name();
                return Err(Refusal::new(
                    Code::ERRCODE_INVALID_PARAMETER_VALUE,
                    format!("chunk_group_row_limit {chunk} exceeds {name} {rows}"),
                )
                .detail(format!("A chunk is a part of a {whole}."))
                .hint(format!("Lower chunk_group_row_limit or raise {name} in the same command.")));
            }
        }
        let (option, limit, whole) = match method {
            AccessMethod::Colcompress => (stripe, settings::STRIPE_ROW_LIMIT.get(), "stripes"),
            AccessMethod::Rowcompress => (batch, settings::BATCH_SIZE.get(), "batches"),
        };
        if chunk > limit && number(option).is_none() {
            let name = option.name();
            Refusal::new(
                Code::ERRCODE_SUCCESSFUL_COMPLETION,
                format!("chunks will have at most {limit} rows, as {whole} have no more"),
            )
            .detail(format!("chunk_group_row_limit is {chunk}, colonnade.{name} {limit}."))
            .hint(format!("Set the option {name}, too."))
            .send(PgLogLevel::NOTICE);
        }
        Ok(())
    }
}

/// The options of table `table`. Empty if it does not exist.
pub fn read(table: Oid) -> Settings {
    // SAFETY: a catalog look-up.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, table.into());
        if tuple.is_null() {
            return Settings::default();
        }
        let settings = from_tuple(tuple);
        pg_sys::ReleaseSysCache(tuple);
        settings
    }
}

/// The owner and the name of table `table`.
pub fn owner_and_name(table: Oid) -> (Oid, String) {
    // SAFETY: a catalog look-up; a tuple that was found has the catalog's columns.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, table.into());
        if tuple.is_null() {
            return (Oid::INVALID, table.to_u32().to_string());
        }
        let form = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_class>(tuple);
        let name = CStr::from_ptr(form.relname.data.as_ptr()).to_string_lossy().into_owned();
        let owner = form.relowner;
        pg_sys::ReleaseSysCache(tuple);
        (owner, name)
    }
}

/// The options that a row has.
///
/// # Safety
/// A row of `pg_class`.
unsafe fn from_tuple(tuple: HeapTuple) -> Settings {
    let mut settings = Settings::default();
    for element in elements(tuple) {
        if let Some((option, value)) = split(element) {
            settings.set(option, value);
        }
    }
    settings
}

/// The elements of the array, as text datums in the current memory context.
///
/// # Safety
/// A row of `pg_class`.
unsafe fn elements(tuple: HeapTuple) -> Vec<Datum> {
    let mut null = true;
    let array = pg_sys::SysCacheGetAttr(
        pg_sys::SysCacheIdentifier::RELOID as i32,
        tuple,
        pg_sys::Anum_pg_class_reloptions as i16,
        &mut null,
    );
    if null { Vec::new() } else { elements_of(array) }
}

/// As `elements`, of the array itself.
///
/// # Safety
/// An array of texts.
pub(super) unsafe fn elements_of(array: Datum) -> Vec<Datum> {
    let array = pg_sys::pg_detoast_datum_copy(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
    let mut values: *mut Datum = std::ptr::null_mut();
    let mut count = 0;
    pg_sys::deconstruct_array(
        array,
        pg_sys::TEXTOID,
        -1,
        false,
        pg_sys::TYPALIGN_INT as std::ffi::c_char,
        &mut values,
        std::ptr::null_mut(),
        &mut count,
    );
    // SAFETY: deconstruct_array filled `count` datums.
    (0..usize::try_from(count).unwrap_or(0)).map(|i| *values.add(i)).collect()
}

/// An array of options; None for no option.
///
/// # Safety
/// Texts.
unsafe fn array_of(mut elements: Vec<Datum>) -> Option<Datum> {
    if elements.is_empty() {
        return None;
    }
    let count = i32::try_from(elements.len()).unwrap_or(i32::MAX);
    let align = pg_sys::TYPALIGN_INT as std::ffi::c_char;
    let array = pg_sys::construct_array(elements.as_mut_ptr(), count, pg_sys::TEXTOID, -1, false, align);
    Some(Datum::from(array))
}

/// The options of an array that are not ours. None if there are none.
///
/// # Safety
/// An array of texts.
pub unsafe fn without_ours(options: Datum) -> Option<Datum> {
    array_of(elements_of(options).into_iter().filter(|element| split(*element).is_none()).collect())
}

/// Splits an element that is one of ours.
///
/// # Safety
/// A text.
unsafe fn split(element: Datum) -> Option<(OptionId, CString)> {
    let whole = CStr::from_ptr(pg_sys::text_to_cstring(element.cast_mut_ptr()));
    let bytes = whole.to_bytes();
    let equals = bytes.iter().position(|b| *b == b'=')?;
    let (name, value) = (bytes.get(..equals)?, bytes.get(equals + 1..)?);
    let option = OptionId::find(&CString::new(name).ok()?)?;
    Some((option, CString::new(value).ok()?))
}

/// A text that `split` takes apart.
fn join(option: OptionId, value: &CStr) -> Datum {
    let mut bytes = option.definition().name.to_bytes().to_vec();
    bytes.push(b'=');
    bytes.extend_from_slice(value.to_bytes());
    let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    // SAFETY: the server copies so many bytes.
    Datum::from(unsafe { pg_sys::cstring_to_text_with_len(bytes.as_ptr().cast(), length) })
}

/// Replaces our options of `table` by `settings` in a new version of its `pg_class` row.
pub fn store(table: Oid, settings: &Settings) {
    // SAFETY: the row of the table, which is locked while it is read and replaced.
    unsafe {
        // Rows that this command wrote before must be visible to be replaced, also the row itself.
        pg_sys::CommandCounterIncrement();
        let catalog = pg_sys::table_open(pg_sys::RelationRelationId, pg_sys::RowExclusiveLock as i32);
        let tuple = pg_sys::SearchSysCacheLocked1(pg_sys::SysCacheIdentifier::RELOID as i32, table.into());
        if tuple.is_null() {
            Refusal::new(
                Code::ERRCODE_INTERNAL_ERROR,
                format!("table {} disappeared while its options were set", table.to_u32()),
            )
            .raise();
        }
        let old = from_tuple(tuple);
        if old != *settings {
            replace(catalog, tuple, settings);
        }
        pg_sys::UnlockTuple(catalog, &raw mut (*tuple).t_self, pg_sys::InplaceUpdateTupleLock as i32);
        pg_sys::ReleaseSysCache(tuple);
        pg_sys::table_close(catalog, pg_sys::RowExclusiveLock as i32);
        pg_sys::CommandCounterIncrement();
    }
}

/// Writes a row with these options in place of those of ours that it has.
///
/// # Safety
/// A row of `pg_class`, which is locked, and the catalog, open for writing.
unsafe fn replace(catalog: pg_sys::Relation, tuple: HeapTuple, settings: &Settings) {
    let kept = elements(tuple).into_iter().filter(|e| split(*e).is_none());
    let ours = settings.iter().map(|(option, value)| join(*option, value));
    let mut all: Vec<Datum> = kept.collect();
    all.extend(ours);

    let width = pg_sys::Natts_pg_class as usize;
    let at = pg_sys::Anum_pg_class_reloptions as usize - 1;
    let mut values = vec![Datum::null(); width];
    let mut nulls = vec![false; width];
    let mut replaces = vec![false; width];
    replaces[at] = true;
    match array_of(all) {
        Some(array) => values[at] = array,
        None => nulls[at] = true,
    }
    let row = pg_sys::heap_modify_tuple(
        tuple,
        (*catalog).rd_att,
        values.as_mut_ptr(),
        nulls.as_mut_ptr(),
        replaces.as_mut_ptr(),
    );
    pg_sys::CatalogTupleUpdate(catalog, &raw mut (*row).t_self, row);
    pg_sys::heap_freetuple(row);
}

/// The name of a table, as a statement writes it.
pub fn quoted_table_name(table: Oid) -> String {
    // SAFETY: catalog look-ups, which give null or strings.
    unsafe {
        let name = pg_sys::get_rel_name(table);
        if name.is_null() {
            return table.to_u32().to_string();
        }
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table));
        text(CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, name)))
    }
}

/// The name of a table for messages, with its schema: that of `host::relation::quoted_name` without the
/// quotes around it.
pub fn table_name(table: Oid) -> String {
    // SAFETY: catalog look-ups, which give null or strings.
    unsafe {
        let name = pg_sys::get_rel_name(table);
        if name.is_null() {
            return table.to_u32().to_string();
        }
        let (name, schema) =
            (text(CStr::from_ptr(name)), pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table)));
        if schema.is_null() { name } else { format!("{}.{name}", text(CStr::from_ptr(schema))) }
    }
}
