//! Columns named by `orderby` that are renamed, dropped or change their type.
//!
//! The object access hook calls this file for every such change, whichever statement or cascade makes it.
//! - A renamed column is renamed in `orderby`.
//! - A drop is refused, as for anything that another object depends on. Under CASCADE, and if the drop is
//!   itself a cascade, the column is taken out of `orderby` with a NOTICE.
//! - A new type must have an order, too. This is checked at the end of the statement.

use super::access_method;
use super::catalog::{self, Settings, quoted_table_name, table_name};
use super::definitions::ORDERBY;
use super::frames::{Alteration, Frame, with_innermost};
use super::nodes;
use super::orderby::{self, NamedKey};
use super::report::{Refusal, text};
use pgrx::PgLogLevel;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{CStr, CString};

/// The keys of a table of ours, or of a partitioned one, that has `orderby`. None for any other relation.
fn keys_of(table: Oid) -> Option<Vec<NamedKey>> {
    let settings = catalog::read(table);
    let value = settings.get(ORDERBY)?;
    if !access_method::takes_options(table) {
        return None;
    }
    // An order that cannot be read names no column.
    orderby::parse(value).ok()
}

fn store_keys(table: Oid, keys: &[NamedKey]) {
    let mut settings = catalog::read(table);
    put_keys(&mut settings, keys, &orderby::spell(keys));
    catalog::store(table, &settings);
}

fn put_keys(settings: &mut Settings, keys: &[NamedKey], spelling: &CStr) {
    if keys.is_empty() {
        settings.reset(ORDERBY);
    } else {
        settings.set(ORDERBY, spelling.to_owned());
    }
}

/// Called when a column is about to be dropped, but not its table.
pub fn dropping(table: Oid, attnum: i16) {
    let Some(mut keys) = keys_of(table) else { return };
    let Some(name) = name_of(table, attnum) else { return };
    if !keys.iter().any(|k| k.column == name) {
        return;
    }
    let (replaced, restricted) = with_innermost(|frame| match frame {
        Frame::Alter(Alteration { options, sets_orderby, restricted_drops, .. }) => (
            *sets_orderby && options.as_ref().is_some_and(|(t, _)| *t == table),
            restricted_drops.contains(&name),
        ),
        _ => (false, false),
    });
    if replaced {
        return;
    }
    let (column, relation) = (text(&name), table_name(table));
    if restricted {
        Refusal::new(
                Code::ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop column \"{column}\": option orderby of table \"{relation}\" names it"),
            )
            .hint(format!(
                "Use DROP COLUMN ... CASCADE to take it out of orderby too, or first set another order: ALTER TABLE {} SET (orderby='...').",
                quoted_table_name(table)
            ))
            .raise();
    }
    keys.retain(|k| k.column != name);
    Refusal::new(
        Code::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("column \"{column}\" leaves option orderby of table \"{relation}\""),
    )
    .send(PgLogLevel::NOTICE);
    store_keys(table, &keys);
    let spelling = orderby::spell(&keys);
    // An ALTER TABLE that puts options back must not put the column back with them.
    with_innermost(|frame| {
        if let Frame::Alter(Alteration { options: Some((t, settings)), .. }) = frame
            && *t == table
        {
            put_keys(settings, &keys, &spelling);
        }
    });
}

/// Called when a column has been changed. Its new row is not yet visible to the catalog caches.
pub fn changed(table: Oid, attnum: i16) {
    let Some(mut keys) = keys_of(table) else { return };
    let Some(before) = name_of(table, attnum) else { return };
    if !keys.iter().any(|k| k.column == before) {
        return;
    }
    let after = name_in_this_command(table, attnum).unwrap_or_else(|| before.clone());
    if after == before {
        with_innermost(|frame| {
            if let Frame::Alter(alteration) = frame {
                alteration.changed_columns.push(table);
            }
        });
        return;
    }
    for key in keys.iter_mut().filter(|k| k.column == before) {
        key.column.clone_from(&after);
    }
    store_keys(table, &keys);
}

/// The column's name as the catalog caches have it.
fn name_of(table: Oid, attnum: i16) -> Option<CString> {
    // SAFETY: a catalog look-up, which gives null or a string.
    unsafe { nodes::owned(pg_sys::get_attname(table, attnum, true)) }
}

/// The column's name as the current command has written it.
fn name_in_this_command(table: Oid, attnum: i16) -> Option<CString> {
    let lock = pg_sys::AccessShareLock as i32;
    let columns = [
        (pg_sys::Anum_pg_attribute_attrelid, pg_sys::F_OIDEQ, table.into()),
        (pg_sys::Anum_pg_attribute_attnum, pg_sys::F_INT2EQ, attnum.into()),
    ];
    let mut conditions = [pg_sys::ScanKeyData::default(); 2];
    // SAFETY: a catalog and its index, open while they are read; the row lives as long as the scan.
    unsafe {
        for (condition, (column, equality, value)) in conditions.iter_mut().zip(columns) {
            let strategy = pg_sys::BTEqualStrategyNumber as u16;
            pg_sys::ScanKeyInit(condition, column as i16, strategy, equality.into(), value);
        }
        let relation = pg_sys::table_open(pg_sys::AttributeRelationId, lock);
        let scan = pg_sys::systable_beginscan(
            relation,
            pg_sys::AttributeRelidNumIndexId.into(),
            true,
            &raw mut pg_sys::SnapshotSelfData,
            2,
            conditions.as_mut_ptr(),
        );
        let tuple = pg_sys::systable_getnext(scan);
        let name = if tuple.is_null() {
            None
        } else {
            let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_attribute>(tuple);
            nodes::owned((*form).attname.data.as_ptr())
        };
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, lock);
        name
    }
}
