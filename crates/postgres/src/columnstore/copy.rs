//! Heap blocks become a stripe.
//!
//! A block is taken only if it is all-visible while its page is locked. The page is copied under that lock;
//! its rows are taken apart afterwards. On such a page each row has one version, which everybody sees. So a
//! row's line pointer that indexes know (its *root*) and its values are all there is. Whoever compares copies
//! with the heap takes the rows that a snapshot sees instead.
//!
//! The stripe has the index's columns, and after them the root of each row, as its place on the page. The
//! rows of a block are in the order of their roots.

use std::sync::Arc;

use pgrx::pg_sys::{self, BlockNumber, Buffer, Datum, HeapTupleData, ItemIdData, Page};
use vector::{LogicalType, Vector, VectorBuilder};

use super::checked;
use crate::convert::{ColumnType, ColumnWriter};
use crate::host::buffer::PAGE_BYTES;
use crate::host::relation::Open;
use crate::host::{buffer, guarded_run, memory};

/// A copy ends when its values take as many bytes in memory.
const MOST_BYTES: usize = 64 << 20;
/// A block whose values outside of their rows take more is not copied: scans read it from the heap.
const MOST_OF_BLOCK: usize = 256 << 20;

/// Blocks as columns.
#[derive(Default)]
pub struct Copied {
    /// Rows.
    pub rows: u32,
    /// The index's columns, and the roots.
    pub columns: Arc<Vec<Vector>>,
    /// Bytes of the values in memory.
    pub bytes: usize,
    /// The blocks, by their places in the region, with the number of their rows.
    pub blocks: Vec<(u16, u16)>,
    /// How many of the given blocks were looked at. The others did not fit.
    pub looked_at: usize,
}

/// The tuple of a normal line pointer.
///
/// # Safety
/// A heap page that is locked, or a copy of one, and a line pointer of it.
pub unsafe fn tuple(page: Page, item: *mut ItemIdData, table: pg_sys::Oid) -> HeapTupleData {
    // SAFETY: a normal line pointer says where on its page the tuple lies.
    unsafe {
        HeapTupleData {
            t_len: (*item).lp_len(),
            t_tableOid: table,
            t_data: pg_sys::PageGetItem(page, item).cast(),
            ..Default::default()
        }
    }
}

/// A page that lies as the server's pages do.
#[repr(C, align(8))]
struct PageCopy([u8; PAGE_BYTES]);

/// Which rows are copied.
#[derive(Clone, Copy)]
pub enum Take {
    /// Those of blocks that are all-visible now.
    AllVisible,
    /// Those that a snapshot sees.
    Seen(pg_sys::Snapshot),
}

/// Copies a block's page, and says which rows are taken: their roots, ascending, and where they lie. None if
/// the block is not all-visible now, and has to be.
unsafe fn copy_page(
    heap: Open,
    block: BlockNumber,
    take: Take,
    map: &mut Buffer,
    copy: &mut PageCopy,
) -> Option<Vec<(u16, u16)>> {
    // SAFETY: the page is looked at under pin and lock. Whoever clears the bit holds its exclusive lock.
    unsafe {
        let buf = buffer::read(heap, block, std::ptr::null_mut());
        buffer::lock_shared(buf);
        let page = buffer::page(buf);
        if let Take::Seen(snapshot) = take {
            let mut places = vec![(0, 0); usize::from(pg_sys::PageGetMaxOffsetNumber(page))];
            let found = checked::rows_seen(heap.as_ptr(), (block, buf), snapshot, &mut places);
            places.truncate(found);
            copy.0.copy_from_slice(buffer::bytes(page));
            buffer::unlock_release(buf);
            return Some(places);
        }
        let is_marked =
            u32::from((*page.cast::<pg_sys::PageHeaderData>()).pd_flags) & pg_sys::PD_ALL_VISIBLE != 0;
        let bits = u32::from(pg_sys::visibilitymap_get_status(heap.as_ptr(), block, map));
        let visible = is_marked && bits & pg_sys::VISIBILITYMAP_ALL_VISIBLE != 0;
        if visible {
            copy.0.copy_from_slice(buffer::bytes(page));
        }
        buffer::unlock_release(buf);
        visible.then(|| rows_of_page(copy.0.as_mut_ptr().cast()))
    }
}

/// The rows of a page, taken apart.
#[derive(Default)]
struct Rows {
    /// The values of all columns of the table, row by row.
    values: Vec<Datum>,
    nulls: Vec<bool>,
    columns: usize,
}

impl Rows {
    /// Takes the rows at these offsets of a page.
    ///
    /// # Safety
    /// A page of the heap, or a copy of one; normal line pointers.
    unsafe fn take(&mut self, heap: Open, page: Page, places: &[(u16, u16)]) {
        let (columns, table, desc) = (heap.columns().len(), heap.oid(), heap.descriptor());
        self.columns = columns;
        self.values.clear();
        self.values.resize(columns * places.len(), Datum::null());
        self.nulls.clear();
        self.nulls.resize(columns * places.len(), true);
        let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
        // SAFETY: the caller's promise; there is room for each row, and the closure owns nothing.
        unsafe {
            guarded_run::together(|| {
                for (at, &(_, offset)) in places.iter().enumerate() {
                    let mut row = tuple(page, pg_sys::PageGetItemId(page, offset), table);
                    let (values, nulls) = (values.add(at * columns), nulls.add(at * columns));
                    guarded_run::heap_deform_tuple(&raw mut row, desc, values, nulls);
                }
            });
        }
    }

    /// The values of a column, by its place in the table.
    fn column(&self, at: usize) -> impl Iterator<Item = Option<Datum>> {
        let step = self.columns.max(1);
        let values = self.values.iter().skip(at).step_by(step);
        values.zip(self.nulls.iter().skip(at).step_by(step)).map(|(&value, &null)| (!null).then_some(value))
    }
}

/// How many bytes the values take that lie outside of a page's rows.
///
/// # Safety
/// A page of the heap, or a copy of one, and its rows.
unsafe fn bytes_outside(heap: Open, page: Page, places: &[(u16, u16)], rows: &Rows) -> usize {
    // SAFETY: the caller's promise. The sizes of values are in the row.
    unsafe {
        let has_some = |&(_, offset): &(u16, u16)| {
            let row = tuple(page, pg_sys::PageGetItemId(page, offset), heap.oid());
            u32::from((*row.t_data).t_infomask) & pg_sys::HEAP_HASEXTERNAL != 0
        };
        if !places.iter().any(has_some) {
            return 0;
        }
        let wide = heap.columns().iter().enumerate().filter(|(_, column)| column.attlen == -1);
        let values = wide.flat_map(|(at, _)| rows.column(at).flatten());
        values.map(|value| pg_sys::toast_raw_datum_size(value)).sum()
    }
}

/// The rows of a page of which everybody sees every row: their roots, ascending, and where they lie. The
/// order does not depend on what HOT updates have moved, so all indexes of a table have it.
///
/// # Safety
/// A copy of such a page.
unsafe fn rows_of_page(page: Page) -> Vec<(u16, u16)> {
    let (mut rows, mut redirected) = (Vec::new(), Vec::new());
    // SAFETY: the line pointers of a page are as many as it says.
    unsafe {
        for offset in 1..=pg_sys::PageGetMaxOffsetNumber(page) {
            let item = pg_sys::PageGetItemId(page, offset);
            match (*item).lp_flags() {
                pg_sys::LP_REDIRECT => redirected.push(((*item).lp_off() as u16, offset)),
                pg_sys::LP_NORMAL => rows.push((offset, offset)),
                _ => {}
            }
        }
    }
    if !redirected.is_empty() {
        for (root, offset) in &mut rows {
            if let Some((_, from)) = redirected.iter().find(|(to, _)| to == offset) {
                *root = *from;
            }
        }
        rows.sort_unstable();
    }
    rows
}

/// Copies these blocks of a region that begins with block `first`, as far as they fit. `attributes` are the
/// columns, by their places in the table.
///
/// # Safety
/// The heap is open and locked. A snapshot that was taken before is active: values that lie outside of their
/// rows stay for it.
pub unsafe fn copy(
    heap: Open,
    attributes: &[usize],
    first: BlockNumber,
    blocks: &[u16],
    take: Take,
) -> Copied {
    let mut writers: Vec<ColumnWriter> = Vec::with_capacity(attributes.len());
    let mut roots = VectorBuilder::new(LogicalType::Int16);
    let mut copied = Copied::default();
    // SAFETY: the copy of a page is a page, and its tuples are of the table's row type. The context is
    // emptied when the values of a block are in the columns.
    unsafe {
        let columns = heap.columns();
        writers.extend(
            attributes
                .iter()
                .filter_map(|&at| columns.get(at))
                .map(|column| ColumnWriter::new(ColumnType::of(column))),
        );
        let mut page = Box::new(PageCopy([0; PAGE_BYTES]));
        let mut rows = Rows::default();
        let mut map: Buffer = 0;
        let context = memory::reset_often(c"colonnade columnstore copy");
        let previous = pg_sys::MemoryContextSwitchTo(context);
        for &at in blocks {
            pgrx::check_for_interrupts!();
            copied.looked_at += 1;
            let block = first + u32::from(at);
            let Some(places) = copy_page(heap, block, take, &mut map, &mut page) else { continue };
            let image: Page = page.0.as_mut_ptr().cast();
            rows.take(heap, image, &places);
            if bytes_outside(heap, image, &places, &rows) > MOST_OF_BLOCK {
                pg_sys::MemoryContextReset(context);
                continue;
            }
            for (writer, &attribute) in writers.iter_mut().zip(attributes) {
                writer.extend(rows.column(attribute));
            }
            for (root, _) in &places {
                roots.push_i16(root.cast_signed());
            }
            copied.rows += places.len() as u32;
            copied.blocks.push((at, places.len() as u16));
            pg_sys::MemoryContextReset(context);
            if writers.iter().map(ColumnWriter::bytes).sum::<usize>() > MOST_BYTES {
                break;
            }
        }
        pg_sys::MemoryContextSwitchTo(previous);
        pg_sys::MemoryContextDelete(context);
        if map != 0 {
            pg_sys::ReleaseBuffer(map);
        }
    }
    copied.bytes = writers.iter().map(ColumnWriter::bytes).sum();
    let own = writers.iter_mut().map(ColumnWriter::take);
    copied.columns = Arc::new(own.chain([roots.finish(&|_, _, _| Box::default())]).collect());
    copied
}
