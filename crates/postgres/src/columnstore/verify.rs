//! `engine.columnstore_verify`, and `engine.verify` of a heap table: copies that count, held against the
//! heap's rows, value by value.
//!
//! The heap's side is a new copy of the same blocks. It is taken after the bits of the visibility map were
//! looked at, and the entries are looked at once more after it. So a block that somebody changes meanwhile is
//! passed over. Of checked blocks the rows are compared that the statement's snapshot sees; the copy may have
//! others, too.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};
use vector::{LogicalType, Selection, Vector};

use super::copy::Take;
use super::layout::{REGION_BLOCKS, SLOTS, Slot};
use super::regions::{self, Region};
use super::{access_method, copy, cover, visibility};
use crate::convert::{ColumnReader, ColumnType};
use crate::host::relation::{Open, with_index, with_table};
use crate::host::{catalogs, fmgr};
use crate::options::maintenance;
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::read::stripe_on_pages::{self, Pages};

crate::sql_function!(pg_finfo_colonnade_columnstore_verify);

/// `engine.columnstore_verify(regclass)`: a row for each block whose copy is not what the heap has.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_columnstore_verify(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the result's row type is that of the SQL declaration.
    unsafe {
        pg_sys::InitMaterializedSRF(call, 0);
        let Some(index) = fmgr::argument(call, 0).map(|value| Oid::from(value.value() as u32)) else {
            return Datum::null();
        };
        let table = access_method::table_of(index);
        maintenance::check_maintainer(table);
        with_table(table, pg_sys::AccessShareLock, |heap| {
            with_index(index, pg_sys::AccessShareLock, |index| {
                check(index, heap, &mut |block, detail| {
                    let detail = std::ffi::CString::new(detail).unwrap_or_default();
                    let detail = Datum::from(pg_sys::cstring_to_text(detail.as_ptr()));
                    fmgr::put_row(call, &mut [Datum::from(i64::from(block)), detail], &mut [false; 2]);
                });
            });
        });
        Datum::null()
    }
}

/// Tells of each block whose copy differs.
///
/// # Safety
/// Both are open and locked, and a snapshot is active.
pub unsafe fn check(index: Open, heap: Open, tell: &mut dyn FnMut(u32, String)) {
    let blocks = heap.block_count();
    // SAFETY: the caller's promise.
    let seen = Take::Seen(unsafe { pg_sys::GetActiveSnapshot() });
    for region in 0..blocks.div_ceil(REGION_BLOCKS) {
        pgrx::check_for_interrupts!();
        // SAFETY: the caller's promise.
        unsafe {
            let visible = visibility::visible(heap, region, blocks);
            let Some(known) = regions::load(index, region) else { continue };
            for number in 1..=SLOTS {
                let here = (0..).zip(&visible).zip(known.entries());
                let (mut clean, mut checked) = (Vec::new(), Vec::new());
                for ((at, &is_visible), _) in here.filter(|(_, entry)| **entry == number) {
                    if is_visible { &mut clean } else { &mut checked }.push(at);
                }
                for (blocks, take) in [(&clean, Take::AllVisible), (&checked, seen)] {
                    if !blocks.is_empty() {
                        check_copy(index, heap, (region, number), &known, (blocks, take), tell);
                    }
                }
            }
        }
    }
}

/// Compares the blocks of one copy.
unsafe fn check_copy(
    index: Open,
    heap: Open,
    (region, number): (u32, u8),
    known: &Region,
    (blocks, take): (&[u16], Take),
    tell: &mut dyn FnMut(u32, String),
) {
    let (slot, first) = (known.slot(number), region * REGION_BLOCKS);
    let attributes = access_method::attributes(index);
    let kinds = kinds_of(heap, &attributes);
    let list = cover::read_tail(index, known.storage_id, &slot, slot.tail().1);
    let stored = match read_columns(index, known.storage_id, &slot, kinds.len()) {
        Ok(stored) => stored,
        Err(problem) => {
            let at = blocks.first().map_or(0, |&at| u32::from(at));
            tell(first + at, format!("the copy that has the block cannot be read: {problem}"));
            return;
        }
    };
    let mut left = blocks;
    while !left.is_empty() {
        // SAFETY: the caller's promise.
        let fresh = unsafe { copy::copy(heap, &attributes, first, left, take) };
        left = left.get(fresh.looked_at.max(1)..).unwrap_or(&[]);
        let now = regions::load(index, region);
        let still_counts = |at: u16| {
            now.as_ref().is_some_and(|now| {
                now.entries().get(usize::from(at)) == Some(&number) && now.slot(number).copy == slot.copy
            })
        };
        let mut start = 0;
        for &(at, rows) in &fresh.blocks {
            let own = start..start + usize::from(rows);
            start = own.end;
            if !still_counts(at) {
                continue;
            }
            let block = first + u32::from(at);
            let found = cover::rows_of_blocks(&list, 0).find(|(_, listed)| *listed == at);
            let Some((there, _)) = found else {
                tell(block, "the copy does not have the block".into());
                continue;
            };
            // A HOT update moves a row on its page: rows are the same whose places in indexes are.
            let (mut there, own) = (
                by_place(&stored, there.start as u32..there.end as u32),
                by_place(&fresh.columns, own.start as u32..own.end as u32),
            );
            if let Take::Seen(_) = take {
                // The copy may have rows that the snapshot does not see.
                let seen: Vec<Option<i16>> = own.iter().map(|&row| place(&fresh.columns, row)).collect();
                there.retain(|&row| seen.contains(&place(&stored, row)));
            }
            if there.len() != own.len() {
                tell(block, format!("the copy has {} rows, the heap {}", there.len(), own.len()));
                continue;
            }
            for (column, kind) in kinds.iter().enumerate().rev() {
                let (Some(copied), Some(heap_has)) = (stored.get(column), fresh.columns.get(column)) else {
                    continue;
                };
                let differs = differs(*kind, (copied, &there), (heap_has, &own));
                if let Some(row) = differs {
                    let name = attributes.get(column).and_then(|&at| heap.column_name(at as u32));
                    let name =
                        name.map_or_else(|| "the rows' places".into(), |name| format!("column \"{name}\""));
                    tell(block, format!("{name} of row {} of the block is not what the heap has", row + 1));
                    break;
                }
            }
        }
    }
}

/// The types of a copy's columns: the index's, and the places of rows.
fn kinds_of(heap: Open, attributes: &[usize]) -> Vec<ColumnType> {
    let columns = heap.columns();
    // SAFETY: the attributes are those of the open table; the type of places is the server's own.
    unsafe {
        let own = attributes.iter().filter_map(|&at| columns.get(at)).map(|column| ColumnType::of(column));
        own.chain([ColumnType::of_type(pg_sys::INT2OID)]).collect()
    }
}

/// All values of a copy.
fn read_columns(index: Open, storage_id: u64, slot: &Slot, columns: usize) -> vector::Result<Vec<Vector>> {
    let entry = slot.stripe(storage_id, Vec::new());
    let reader = stripe_on_pages::open_anew(index, &entry)?;
    let bytes = Pages::new(index, &entry);
    let rows: Vec<u32> = (0..slot.rows).collect();
    let empty = |column| {
        Vector::new(reader.logical(column).unwrap_or(LogicalType::Int16), vector::Values::Int16(Vec::new()))
    };
    (0..columns)
        .map(|column| match rows.is_empty() {
            true => Ok(empty(column)),
            false => reader.take(column, &rows, &bytes, &ServerCodecs).map(Vector::flatten),
        })
        .collect()
}

/// These rows of a copy, in the order of their places on the page.
fn by_place(columns: &[Vector], rows: std::ops::Range<u32>) -> Vec<u32> {
    let mut rows: Vec<u32> = rows.collect();
    rows.sort_by_key(|&row| place(columns, row));
    rows
}

/// The place of a row of a copy on its page.
fn place(columns: &[Vector], row: u32) -> Option<i16> {
    match columns.last().map(|column| &column.values) {
        Some(vector::Values::Int16(places)) => places.get(row as usize).copied(),
        _ => None,
    }
}

/// The first of these rows whose values are not the same.
fn differs(kind: ColumnType, one: (&Vector, &[u32]), other: (&Vector, &[u32])) -> Option<usize> {
    let (mut left, mut right) = (ColumnReader::new(kind), ColumnReader::new(kind));
    let (a, a_null) = datums(&mut left, one);
    let (b, b_null) = datums(&mut right, other);
    // SAFETY: values of one type, alive until the readers go.
    unsafe {
        let (mut length, mut by_value) = (0, false);
        pg_sys::get_typlenbyval(kind.type_oid, &raw mut length, &raw mut by_value);
        let same = |((a, a_null), (b, b_null)): ((&Datum, &bool), (&Datum, &bool))| {
            a_null == b_null && (*a_null || catalogs::same_bytes(*a, *b, by_value, length))
        };
        a.iter().zip(&a_null).zip(b.iter().zip(&b_null)).position(|pair| !same(pair))
    }
}

/// The values of some rows, and which are NULL.
fn datums(reader: &mut ColumnReader, (column, rows): (&Vector, &[u32])) -> (Vec<Datum>, Vec<bool>) {
    let (mut values, mut nulls) = (vec![Datum::null(); rows.len()], vec![true; rows.len()]);
    reader.datums(column, &Selection::Rows(rows.to_vec()), &mut values, &mut nulls);
    (values, nulls)
}
