//! COPY FROM without text: values go from the pages of the file into rows of the table.
//!
//! That is done where the server's COPY would do no more than read values and insert rows (`is_plain`), and
//! where each value has the same text in the file's type and in the column's, but for length and precision
//! (`holds`). `from_file` does all else, and so raises the errors of whoever may not do this.

use std::ffi::CStr;
use std::rc::Rc;

use files::column::Column;
use files::parquet::{Wanted, columns};
use files::{Field, FieldKind};
use pgrx::pg_sys::{self, CopyStmt, Oid};
use stripe::{OpenStripe, StripeBytes};
use vector::Vector;

use super::insertion::{From, Insertion, ROWS};
use super::statement::ParquetCopy;
use crate::convert::{ColumnReader, ColumnType};
use crate::host::encoding;
use crate::host::relation::{Open, with_table};
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::parquet_file::{self, Bytes, KnownFile};

/// Bytes of rows that are inserted at once, about.
const MOST_BYTES: usize = 8 << 20;

/// Runs the statement, if it is one of those. Returns how many rows were inserted.
///
/// # Errors
/// ERRORs of the file, and those of inserting rows.
///
/// # Safety
/// A COPY FROM statement as the server hands it to a hook.
pub unsafe fn run(copy: &ParquetCopy, statement: *const CopyStmt) -> Option<u64> {
    // SAFETY: the caller's promise. The server raises an ERROR where there is no such table.
    unsafe {
        if !copy.rest.is_empty() || !(*statement).whereClause.is_null() {
            return None;
        }
        let lock = pg_sys::RowExclusiveLock as i32;
        let name = (*statement).relation;
        let table = pg_sys::RangeVarGetRelidExtended(name, lock, 0, None, std::ptr::null_mut());
        with_table(table, pg_sys::NoLock, |rel| {
            let targets = targets(rel, statement).filter(|targets| is_plain(rel, targets))?;
            let file = parquet_file::known(&copy.path);
            let read = chosen(rel, &file, &targets, copy.by_name)?;
            Some(insert(rel, &file, &targets, read))
        })
    }
}

/// The positions of the columns that are filled. None: the server has to look at their names.
unsafe fn targets(rel: Open, statement: *const CopyStmt) -> Option<Vec<usize>> {
    // SAFETY: the statement's own list.
    let named = unsafe { pgrx::PgList::<pg_sys::String>::from_pg((*statement).attlist) };
    if named.is_empty() {
        let all = rel.columns().iter().enumerate();
        return Some(all.filter(|(_, column)| !column.attisdropped).map(|(at, _)| at).collect());
    }
    let mut found = Vec::new();
    for name in named.iter_ptr() {
        // SAFETY: terminated strings.
        let is_it = |column: &pg_sys::FormData_pg_attribute| unsafe {
            !column.attisdropped
                && CStr::from_ptr(column.attname.data.as_ptr()) == CStr::from_ptr((*name).sval)
        };
        found.push(rel.columns().iter().position(is_it)?);
    }
    let mut distinct = found.clone();
    distinct.sort_unstable();
    distinct.dedup();
    (distinct.len() == found.len()).then_some(found)
}

/// Whether rows are only inserted: no partitions, triggers, computed columns or row security, and the user
/// may do it.
unsafe fn is_plain(rel: Open, targets: &[usize]) -> bool {
    // SAFETY: an open relation; catalog look-ups.
    unsafe {
        let user = pg_sys::GetUserId();
        let acl = pg_sys::ACL_INSERT as pg_sys::AclMode;
        let is_allowed = |result| result == pg_sys::AclResult::ACLCHECK_OK;
        let may_fill = |&at: &usize| {
            let number = rel.columns().get(at).map_or(0, |column| column.attnum);
            is_allowed(pg_sys::pg_attribute_aclcheck(rel.oid(), number, user, acl))
        };
        let has_triggers = (*rel.as_ptr()).trigdesc.as_ref().is_some_and(|triggers| {
            triggers.trig_insert_before_row
                || triggers.trig_insert_after_row
                || triggers.trig_insert_before_statement
                || triggers.trig_insert_after_statement
        });
        let none = i32::try_from(pg_sys::CheckEnableRlsResult::RLS_NONE).unwrap_or(0);
        let none_here = i32::try_from(pg_sys::CheckEnableRlsResult::RLS_NONE_ENV).unwrap_or(0);
        rel.kind() == pg_sys::RELKIND_RELATION
            && !rel.is_foreign_temporary()
            && !pg_sys::IsSystemRelation(rel.as_ptr())
            && (!pg_sys::XactReadOnly || rel.is_temporary())
            && !has_triggers
            && rel.columns().iter().all(|column| column.attisdropped || column.attgenerated == 0)
            && (is_allowed(pg_sys::pg_class_aclcheck(rel.oid(), user, acl))
                || (!targets.is_empty() && targets.iter().all(may_fill)))
            && [none, none_here].contains(&pg_sys::check_enable_rls(rel.oid(), Oid::INVALID, true))
    }
}

/// A field of the file, and what the server calls its type.
struct Read {
    column: Column,
    from: From,
}

/// The fields that fill these columns, in their order. None where `from_file` has to do it.
fn chosen(rel: Open, file: &KnownFile, targets: &[usize], by_name: bool) -> Option<Vec<Read>> {
    let fields = file.footer.fields();
    // A struct may be what fills a column.
    if !by_name && (fields.len() != targets.len() || file.footer.has_structs()) {
        return None;
    }
    let of_target = |(place, &at): (usize, &usize)| {
        let attribute = rel.columns().get(at)?;
        let field: &Field = match by_name {
            true => {
                // SAFETY: a terminated string.
                let name = unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) };
                let name = encoding::to_utf8(name);
                fields.iter().find(|field| field.name == name)?
            }
            false => fields.get(place)?,
        };
        // A table finds its columns by name.
        let is_alone = fields.iter().filter(|other| other.name == field.name).count() == 1;
        let (type_oid, modifier) = type_of(field.kind)?;
        // What JSON becomes, it becomes where the file is read.
        let (kind, type_oid) = match (type_oid, attribute.atttypid) {
            (pg_sys::JSONOID, pg_sys::JSONBOID) => (FieldKind::Jsonb, pg_sys::JSONBOID),
            (pg_sys::JSONOID, pg_sys::TEXTOID) => (FieldKind::Text, pg_sys::TEXTOID),
            _ => (field.kind, type_oid),
        };
        let field = &Field { name: field.name.clone(), kind };
        let [column] = <[Column; 1]>::try_from(columns(std::slice::from_ref(field)).ok()?).ok()?;
        let read = Read { column, from: From { type_oid, modifier } };
        (is_alone && holds(type_oid, attribute)).then_some(read)
    };
    targets.iter().enumerate().map(of_target).collect()
}

/// The type that values of a field have before they become those of a column, and its modifier.
fn type_of(kind: FieldKind) -> Option<(Oid, i32)> {
    let oid = match kind {
        FieldKind::Bool => pg_sys::BOOLOID,
        FieldKind::Integer { bits: 16 } => pg_sys::INT2OID,
        FieldKind::Integer { bits: 32 } => pg_sys::INT4OID,
        FieldKind::Integer { .. } => pg_sys::INT8OID,
        FieldKind::Real { bits: 32 } => pg_sys::FLOAT4OID,
        FieldKind::Real { .. } => pg_sys::FLOAT8OID,
        FieldKind::Decimal { precision, scale } => {
            let modifier = i32::from(precision) << 16 | i32::from(scale);
            return Some((pg_sys::NUMERICOID, modifier + pg_sys::VARHDRSZ as i32));
        }
        // Text of a database with another encoding has to be converted.
        FieldKind::Text if encoding::is_utf8() => pg_sys::TEXTOID,
        FieldKind::Json if encoding::is_utf8() => pg_sys::JSONOID,
        FieldKind::Bytes => pg_sys::BYTEAOID,
        FieldKind::Uuid => pg_sys::UUIDOID,
        FieldKind::Date => pg_sys::DATEOID,
        FieldKind::Time(_) => pg_sys::TIMEOID,
        FieldKind::Timestamp { is_instant: true, .. } => pg_sys::TIMESTAMPTZOID,
        FieldKind::Timestamp { .. } => pg_sys::TIMESTAMPOID,
        _ => return None,
    };
    Some((oid, -1))
}

/// Whether a cast to a column's type gives what its input function makes of a value's text, or an ERROR where
/// that raises one.
fn holds(from: Oid, column: &pg_sys::FormData_pg_attribute) -> bool {
    let is_integer = |oid| matches!(oid, pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID);
    let to = column.atttypid;
    match from {
        // A precision has values rounded, which a cast may do otherwise than the input function.
        pg_sys::TIMEOID | pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => to == from && column.atttypmod < 0,
        pg_sys::TEXTOID => matches!(to, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID),
        _ if is_integer(from) => is_integer(to) || to == pg_sys::NUMERICOID,
        _ => to == from,
    }
}

/// Inserts all rows of a file. Returns how many.
unsafe fn insert(rel: Open, file: &Rc<KnownFile>, targets: &[usize], read: Vec<Read>) -> u64 {
    let wanted = read.iter().map(|read| Some(Wanted { column: &read.column, otherwise: None }));
    let columns = file.footer.table(wanted.collect());
    let columns = columns.unwrap_or_else(|problem| parquet_file::fail(&file.path, &problem));
    let bytes = Bytes(Rc::clone(file));
    let from: Vec<From> = read.iter().map(|read| read.from).collect();
    let rows = file.footer.group_rows().fold(0, u64::saturating_add);
    // SAFETY: an open table that is locked; values live until the rows that have them are inserted.
    unsafe {
        let mut insertion = Insertion::begin(rel, &from, targets, rows);
        let mut readers: Vec<_> =
            from.iter().map(|from| ColumnReader::new(ColumnType::of_type(from.type_oid))).collect();
        for at in 0..file.footer.group_rows().len() {
            let group = file.group(at, &columns);
            let inserted = group.and_then(|group| {
                for chunk in 0..group.chunk_count() {
                    let values = decoded(&group, chunk, readers.len(), &bytes)?;
                    push(&mut insertion, &mut readers, &values, group.chunk_rows(chunk).len());
                }
                Ok(())
            });
            inserted.unwrap_or_else(|problem| fail(file, problem));
        }
        insertion.end()
    }
}

/// Raises an ERROR about the file.
fn fail(file: &KnownFile, problem: vector::Error) -> ! {
    let problem = match problem {
        vector::Error::Unsupported(what) => files::Error::Unsupported(what),
        vector::Error::Host(text) => std::io::Error::other(text).into(),
        other => files::Error::Malformed(other.to_string()),
    };
    parquet_file::fail(&file.path, &problem)
}

/// The values of a chunk, column by column.
fn decoded(
    group: &dyn OpenStripe,
    chunk: u32,
    columns: usize,
    bytes: &dyn StripeBytes,
) -> vector::Result<Vec<Vector>> {
    let column = |at| {
        let mut read = group.read_chunk(at, chunk, bytes, &ServerCodecs)?;
        read.verify()?;
        read.decode(&ServerCodecs)
    };
    (0..columns).map(column).collect()
}

/// Inserts the rows of a chunk.
///
/// # Safety
/// The readers are those of the insertion's columns.
unsafe fn push(insertion: &mut Insertion, readers: &mut [ColumnReader], columns: &[Vector], rows: usize) {
    let mut values = vec![[pg_sys::Datum::null(); ROWS]; columns.len()];
    let mut nulls = vec![[true; ROWS]; columns.len()];
    let of_row = columns.iter().map(Vector::bytes).sum::<usize>() / rows.max(1);
    let at_once = (MOST_BYTES / of_row.max(1)).clamp(1, ROWS);
    let mut first = 0;
    while first < rows {
        pgrx::check_for_interrupts!();
        let count = at_once.min(rows - first);
        for (at, (reader, column)) in readers.iter_mut().zip(columns).enumerate() {
            let (Some(values), Some(nulls)) = (values.get_mut(at), nulls.get_mut(at)) else { continue };
            reader.datums_in(column, first..first + count, values, nulls);
        }
        // SAFETY: the caller's promise.
        unsafe { insertion.push(&values, &nulls, count) };
        readers.iter_mut().for_each(ColumnReader::reset);
        first += count;
    }
}
