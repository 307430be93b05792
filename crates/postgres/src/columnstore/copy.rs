//! Heap blocks become a stripe.
//!
//! A block is taken only if it is all-visible while its page is locked. The page is copied under that lock;
//! its rows are taken apart afterwards. On such a page each row has one version, which everybody sees. So a
//! row's line pointer that indexes know (its *root*) and its values are all there is.
//!
//! The stripe has the index's columns, and after them the root of each row, as its place on the page. The
//! rows of a block are in the order of their roots.

use pgrx::pg_sys::{self, BlockNumber, Buffer, Datum, HeapTupleData, ItemIdData, Page};
use vector::{LogicalType, Vector, VectorBuilder};

use crate::convert::{ColumnType, ColumnWriter};
use crate::host::buffer::PAGE_BYTES;
use crate::host::relation::Open;
use crate::host::{buffer, memory};

/// A copy ends when its values take as many bytes in memory.
const MOST_BYTES: usize = 64 << 20;
/// A block whose values outside of their rows take more is not copied: scans read it from the heap.
const MOST_OF_BLOCK: usize = 256 << 20;

/// Blocks as columns.
pub struct Copied {
    /// Rows.
    pub rows: u32,
    /// The index's columns, and the roots.
    pub columns: Vec<Vector>,
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

/// Copies a block's page if the block is all-visible now.
unsafe fn copy_page(heap: Open, block: BlockNumber, map: &mut Buffer, copy: &mut PageCopy) -> bool {
    // SAFETY: the page is looked at under pin and lock. Whoever clears the bit holds its exclusive lock.
    unsafe {
        let buf = buffer::read(heap, block, std::ptr::null_mut());
        buffer::lock_shared(buf);
        let page = buffer::page(buf);
        let is_marked =
            u32::from((*page.cast::<pg_sys::PageHeaderData>()).pd_flags) & pg_sys::PD_ALL_VISIBLE != 0;
        let bits = u32::from(pg_sys::visibilitymap_get_status(heap.as_ptr(), block, map));
        let visible = is_marked && bits & pg_sys::VISIBILITYMAP_ALL_VISIBLE != 0;
        if visible {
            copy.0.copy_from_slice(buffer::bytes(page));
        }
        buffer::unlock_release(buf);
        visible
    }
}

/// How many bytes the values take that lie outside of a page's rows.
///
/// # Safety
/// A page of the heap, or a copy of one; there is room for a row's values.
unsafe fn bytes_outside(heap: Open, page: Page, values: &mut [Datum], nulls: &mut [bool]) -> usize {
    let mut bytes = 0;
    // SAFETY: as `copy`. The sizes of values are in the row.
    unsafe {
        for offset in 1..=pg_sys::PageGetMaxOffsetNumber(page) {
            let item = pg_sys::PageGetItemId(page, offset);
            if (*item).lp_flags() != pg_sys::LP_NORMAL {
                continue;
            }
            let mut row = tuple(page, item, heap.oid());
            if u32::from((*row.t_data).t_infomask) & pg_sys::HEAP_HASEXTERNAL == 0 {
                continue;
            }
            pg_sys::heap_deform_tuple(
                &raw mut row,
                heap.descriptor(),
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            for (column, (value, null)) in heap.columns().iter().zip(values.iter().zip(nulls.iter())) {
                if !null && column.attlen == -1 {
                    bytes += pg_sys::toast_raw_datum_size(*value);
                }
            }
        }
    }
    bytes
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
pub unsafe fn copy(heap: Open, attributes: &[usize], first: BlockNumber, blocks: &[u16]) -> Copied {
    let mut writers: Vec<ColumnWriter> = Vec::with_capacity(attributes.len());
    let mut roots = VectorBuilder::new(LogicalType::Int16);
    let mut copied = Copied { rows: 0, columns: Vec::new(), blocks: Vec::new(), looked_at: 0 };
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
        let mut values = vec![Datum::null(); columns.len()];
        let mut nulls = vec![true; columns.len()];
        let mut map: Buffer = 0;
        let context = memory::reset_often(c"colonnade columnstore copy");
        let previous = pg_sys::MemoryContextSwitchTo(context);
        for &at in blocks {
            pgrx::check_for_interrupts!();
            copied.looked_at += 1;
            if !copy_page(heap, first + u32::from(at), &mut map, &mut page) {
                continue;
            }
            let image: Page = page.0.as_mut_ptr().cast();
            if bytes_outside(heap, image, &mut values, &mut nulls) > MOST_OF_BLOCK {
                continue;
            }
            let before = copied.rows;
            for (root, offset) in rows_of_page(image) {
                let item = pg_sys::PageGetItemId(image, offset);
                let mut row = tuple(image, item, heap.oid());
                pg_sys::heap_deform_tuple(
                    &raw mut row,
                    heap.descriptor(),
                    values.as_mut_ptr(),
                    nulls.as_mut_ptr(),
                );
                for (writer, &attribute) in writers.iter_mut().zip(attributes) {
                    let null = nulls.get(attribute).copied().unwrap_or(true);
                    writer.push_value(values.get(attribute).copied().unwrap_or(Datum::null()), null);
                }
                roots.push_i16(root.cast_signed());
                copied.rows += 1;
            }
            copied.blocks.push((at, (copied.rows - before) as u16));
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
    copied.columns = writers.iter_mut().map(ColumnWriter::take).collect();
    copied.columns.push(roots.finish(&|_, _, _| Box::default()));
    copied
}
