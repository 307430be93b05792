//! Bytes <-> runs of stripe pages.
//!
//! Called by the writer of stripes (`space::runs`), and by all code that reads a stripe (`read_range`). A run
//! is a stretch of consecutive blocks. It is on pages that hot rows have left (`space::emptied_pages`), or on
//! new pages at the end of the file.
//!
//! Invariants (each was seen broken in the prototype):
//! - The extension lock is held for a whole new run, so its blocks are consecutive.
//! - Each page is formatted, marked all-visible and logged before its content lock is first released. So no
//!   other backend can take it for an empty heap page.
//! - The free space map never hears of it.

use std::ops::Range;

use pgrx::pg_sys::{self, BlockNumber, Buffer, Page};
use vector::Error;

use super::page_header::{self, Header, PAYLOAD_BYTES, PAYLOAD_OFFSET, Parsed};
use crate::host::buffer::{PAGE_BYTES, PAGE_HEADER_BYTES};
use crate::host::relation::Open;
use crate::host::{buffer, critical, error};

pub use super::page_header::PageOwner;

/// A stretch of consecutive blocks that holds one stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRun {
    /// First block.
    pub first_block: u32,
    /// Number of blocks.
    pub block_count: u32,
}

impl BlockRun {
    /// A run of no blocks, as a reservation has it.
    pub const EMPTY: Self = Self { first_block: 0, block_count: 0 };

    /// The block after its last one.
    pub const fn end(&self) -> BlockNumber {
        self.first_block.saturating_add(self.block_count)
    }
}

impl PageOwner {
    /// The owner of pages written by the current transaction (which gets an xid if it has none).
    pub fn current(storage_id: u64, first_row: u64) -> Self {
        // SAFETY: called inside a transaction.
        let writer = unsafe { pg_sys::GetTopFullTransactionId() }.value;
        Self { storage_id, first_row, writer }
    }
}

/// Whose file a run is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOf {
    /// A table's, which has a visibility map.
    Table,
    /// An index's.
    Index,
}

/// Heap tuples are in blocks below this one. From here on there are the virtual blocks of cold rows.
pub const BLOCK_LIMIT: BlockNumber = 1 << 31;

/// Makes a page a heap page without tuples and free space, with our header and payload.
unsafe fn format(page: Page, header: &Header, payload: &[u8]) {
    debug_assert!(payload.len() <= PAYLOAD_BYTES);
    // SAFETY: the caller holds the exclusive lock of a page of PAGE_BYTES bytes; both copies stay inside it.
    unsafe {
        pg_sys::PageInit(page, PAGE_BYTES, 0);
        let head = page.cast::<pg_sys::PageHeaderData>();
        let end = PAGE_HEADER_BYTES as pg_sys::LocationIndex;
        (*head).pd_lower = end;
        (*head).pd_upper = end;
        (*head).pd_special = end;
        (*head).pd_flags |= pg_sys::PD_ALL_VISIBLE as u16;
        let base = page.cast::<u8>();
        let bytes = page_header::encode(header);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(PAGE_HEADER_BYTES), bytes.len());
        let room = payload.len().min(PAYLOAD_BYTES);
        std::ptr::copy_nonoverlapping(payload.as_ptr(), base.add(PAYLOAD_OFFSET), room);
    }
}

/// Formats and logs a page that is new or empty, pinned and exclusively locked, and sets its visibility-map
/// bits. `vmbuffer` is kept from call to call. The caller releases it at the end. An index has no map: None.
pub unsafe fn format_new(
    rel: Open,
    buf: Buffer,
    mut vmbuffer: Option<&mut Buffer>,
    header: &Header,
    payload: &[u8],
    logged: bool,
) {
    // SAFETY: everything that allocates or may fail (the visibility-map pin, the xid) comes before the
    // critical section; inside are only plain stores and the server's own logging.
    unsafe {
        let block = pg_sys::BufferGetBlockNumber(buf);
        if let Some(vmbuffer) = &mut vmbuffer {
            pg_sys::visibilitymap_pin(rel.as_ptr(), block, *vmbuffer);
        }
        critical::start();
        format(buffer::page(buf), header, payload);
        pg_sys::MarkBufferDirty(buf);
        if logged {
            pg_sys::log_newpage_buffer(buf, true);
        }
        if let Some(vmbuffer) = vmbuffer {
            pg_sys::visibilitymap_set(
                rel.as_ptr(),
                block,
                buf,
                0,
                *vmbuffer,
                pg_sys::InvalidTransactionId,
                (pg_sys::VISIBILITYMAP_ALL_VISIBLE | pg_sys::VISIBILITYMAP_ALL_FROZEN) as u8,
            );
        }
        critical::end();
    }
}

/// Writes the header of an existing page anew and logs the page. The caller holds its exclusive lock.
pub(super) unsafe fn rewrite_logged(rel: Open, buf: Buffer, header: &Header) {
    // SAFETY: as in `format_new`.
    unsafe {
        let logged = rel.needs_wal();
        let bytes = page_header::encode(header);
        critical::start();
        let base = buffer::page(buf).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(PAGE_HEADER_BYTES), bytes.len());
        pg_sys::MarkBufferDirty(buf);
        if logged {
            pg_sys::log_newpage_buffer(buf, true);
        }
        critical::end();
    }
}

/// Writes `bytes` as a run of new stripe pages at the end of the file. Block 0 exists (`metapage::ensure` of
/// a table). The pages mean nothing until a directory row names them; if none ever does, VACUUM gives them
/// back.
///
/// # Safety
/// `rel` is locked with at least RowExclusiveLock.
pub unsafe fn append_run(rel: Open, bytes: &[u8], owner: PageOwner, file: FileOf) -> BlockRun {
    // SAFETY: the lock is promised; the buffer protocol is described at the top.
    unsafe {
        let logged = rel.needs_wal();
        let needs_lock = !rel.is_local();
        let mut vmbuffer: Buffer = 0;
        let mut run = BlockRun::EMPTY;
        if needs_lock {
            pg_sys::LockRelationForExtension(rel.as_ptr(), pg_sys::ExclusiveLock as i32);
        }
        for (number, payload) in bytes.chunks(PAYLOAD_BYTES).enumerate() {
            let Ok(page_number) = u32::try_from(number) else { error::internal("stripe has too many pages") };
            let buf = extend(rel, &mut run);
            let map = (file == FileOf::Table).then_some(&mut vmbuffer);
            format_new(rel, buf, map, &Header::Stripe { owner, page_number }, payload, logged);
            buffer::unlock_release(buf);
            run.block_count = page_number + 1;
            if page_number % 256 == 255 {
                pgrx::check_for_interrupts!();
            }
        }
        if needs_lock {
            pg_sys::UnlockRelationForExtension(rel.as_ptr(), pg_sys::ExclusiveLock as i32);
        }
        if vmbuffer != 0 {
            pg_sys::ReleaseBuffer(vmbuffer);
        }
        run
    }
}

/// Pages of a run of so many bytes.
pub const fn pages_of(bytes: usize) -> u32 {
    bytes.div_ceil(PAYLOAD_BYTES) as u32
}

/// Writes `bytes` as a run of stripe pages over blocks of an index's file that nobody reads any more.
///
/// # Safety
/// The blocks from `first_block` on are there, and nobody else writes to them.
pub unsafe fn overwrite_run(rel: Open, first_block: u32, bytes: &[u8], owner: PageOwner) -> BlockRun {
    let logged = rel.needs_wal();
    let mut run = BlockRun { first_block, block_count: 0 };
    for (page_number, payload) in (0..).zip(bytes.chunks(PAYLOAD_BYTES)) {
        // SAFETY: the caller's promise. What the page had is not looked at.
        unsafe {
            let buf = pg_sys::ReadBufferExtended(
                rel.as_ptr(),
                pg_sys::ForkNumber::MAIN_FORKNUM,
                first_block + page_number,
                pg_sys::ReadBufferMode::RBM_ZERO_AND_LOCK,
                std::ptr::null_mut(),
            );
            format_new(rel, buf, None, &Header::Stripe { owner, page_number }, payload, logged);
            buffer::unlock_release(buf);
        }
        run.block_count = page_number + 1;
        if page_number % 256 == 255 {
            pgrx::check_for_interrupts!();
        }
    }
    run
}

/// Adds a page to a run at the end of the file: pinned, exclusively locked and empty. The caller holds the
/// extension lock, and counts the page.
unsafe fn extend(rel: Open, run: &mut BlockRun) -> Buffer {
    // SAFETY: as `append_run`.
    unsafe {
        let buf = buffer::extend_locked(rel);
        let block = pg_sys::BufferGetBlockNumber(buf);
        if run.block_count == 0 {
            run.first_block = block;
        }
        if block != run.first_block + run.block_count || block == 0 {
            error::internal(format!("block {block} does not continue the run at {}", run.first_block));
        }
        if block >= BLOCK_LIMIT {
            error::raise(
                error::PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("table {} cannot be larger than 16 TB", rel.quoted_name()),
                "",
                "Partition the table.",
            );
        }
        if !pg_sys::PageIsNew(buffer::page(buf)) {
            error::corrupt(rel, None, &format!("Block {block} past the end of the file is not empty."));
        }
        buf
    }
}

/// What the pages of a run must say about themselves to be believed.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// Storage id of the relation.
    pub storage_id: u64,
    /// First row number of the stripe.
    pub first_row: u64,
}

/// Appends bytes `range` of the stripe stored in `run` to `out`. Pages are immutable, so each is copied under
/// a short shared lock. Errors: `Corrupt` when a page is missing, is not a page of this stripe, or the range
/// leaves the run; other I/O problems raise the server's ERROR.
pub unsafe fn read_range(
    rel: Open,
    run: BlockRun,
    expected: Expected,
    range: Range<u64>,
    strategy: pg_sys::BufferAccessStrategy,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let payload = PAYLOAD_BYTES as u64;
    if range.start > range.end || range.end > u64::from(run.block_count) * payload {
        return Err(Error::corrupt("byte range lies outside the stripe's pages"));
    }
    let length =
        usize::try_from(range.end - range.start).map_err(|_| Error::corrupt("byte range is too long"))?;
    out.try_reserve(length).map_err(|_| Error::OutOfMemory { bytes: length })?;
    let mut at = range.start;
    while at < range.end {
        let number = u32::try_from(at / payload).map_err(|_| Error::corrupt("page number is too large"))?;
        let within = usize::try_from(at % payload).map_err(|_| Error::corrupt("offset is too large"))?;
        let left = usize::try_from(range.end - at).map_err(|_| Error::corrupt("byte range is too long"))?;
        let take = left.min(PAYLOAD_BYTES - within);
        let block =
            run.first_block.checked_add(number).ok_or_else(|| Error::corrupt("run of blocks is too long"))?;
        // SAFETY: the page is looked at only under pin and shared lock, and copied out of it.
        unsafe {
            let buf = buffer::read(rel, block, strategy);
            buffer::lock_shared(buf);
            let page = buffer::bytes(buffer::page(buf));
            let verdict = judge(page, expected, number);
            if verdict.is_none() {
                out.extend_from_slice(&page[PAYLOAD_OFFSET + within..PAYLOAD_OFFSET + within + take]);
            }
            buffer::unlock_release(buf);
            if let Some(what) = verdict {
                return Err(Error::corrupt(format!("block {block}: {what}")));
            }
        }
        at += take as u64;
    }
    Ok(())
}

/// Why a page is not page `number` of the expected stripe, or None when it is.
fn judge(page: &[u8], expected: Expected, number: u32) -> Option<&'static str> {
    match page_header::parse(page) {
        Parsed::Foreign => Some("not a stripe page"),
        Parsed::Broken(what) => Some(what),
        Parsed::Ours(Header::Meta { .. }) => Some("a metapage where a stripe page belongs"),
        Parsed::Ours(Header::Stripe { owner, page_number }) => {
            if owner.storage_id != expected.storage_id || owner.first_row != expected.first_row {
                Some("page belongs to another stripe")
            } else if page_number != number {
                Some("page is out of place in its stripe")
            } else {
                None
            }
        }
    }
}
