//! Every page of the file: can it be read, is it one that belongs here, and whose is it?
//!
//! Called first by `verify`. Each page is read from disk, past the buffers, and checked by the server's own
//! test: its checksum, if the cluster has checksums, and the sanity of its page header. Then its own header
//! is read from the buffers. Stripe pages are remembered as runs, and `stripes` compares these with the
//! directory.
//!
//! A page that another process is just writing may look torn. So such a page is read again before it is
//! called bad.

use pgrx::pg_sys::{self, BlockNumber};

use super::report::{Place, Report};
use crate::compat;
use crate::host::buffer;
use crate::host::buffer::PAGE_BYTES;
use crate::host::relation::Open;
use crate::host::relation_file;
use crate::storage::file::page_header::{self, Header, PageOwner, Parsed};

/// How often a page that looks torn is read again.
const AGAIN: u32 = 5;

/// What is reported of a page that the server would not read.
const UNSOUND: &str =
    "the page on disk fails the server's check: its checksum does not match or its header is invalid";

/// Consecutive stripe pages of one writer, numbered without a gap.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The owner that their headers name.
    pub owner: PageOwner,
    /// First block.
    pub first_block: BlockNumber,
    /// Number of pages.
    pub count: u32,
    /// Page number of the first one.
    pub first_page: u32,
}

impl Found {
    const fn continues_with(&self, owner: PageOwner, block: BlockNumber, page: u32) -> bool {
        self.owner.storage_id == owner.storage_id
            && self.owner.first_row == owner.first_row
            && self.owner.writer == owner.writer
            && self.first_block + self.count == block
            && self.first_page + self.count == page
    }
}

/// What the file holds.
pub struct Pages {
    /// Runs of stripe pages, by block.
    pub runs: Vec<Found>,
    /// Blocks that cannot be read, ascending.
    pub bad: Vec<BlockNumber>,
    /// Blocks looked at.
    pub blocks: BlockNumber,
}

impl Pages {
    /// Whether block 0 can be read without an ERROR.
    pub fn metapage_is_readable(&self) -> bool {
        self.bad.first() != Some(&0)
    }

    /// The first bad block of these, if any.
    pub fn first_bad(&self, first: BlockNumber, count: u32) -> Option<BlockNumber> {
        let at = self.bad.partition_point(|&block| block < first);
        self.bad.get(at).copied().filter(|&block| block - first < count)
    }
}

/// Reads every page.
pub fn check(rel: Open, report: &mut Report) -> Pages {
    // SAFETY: the strategy is freed after the last page is read by it.
    unsafe {
        let blocks = rel.block_count();
        let mut pages = Pages { runs: Vec::new(), bad: Vec::new(), blocks };
        let strategy = pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD);
        for block in 0..blocks {
            pgrx::check_for_interrupts!();
            let place = Place { block: Some(block), ..Place::default() };
            if !on_disk(rel, block) {
                report.add("page", place, UNSOUND);
                pages.bad.push(block);
                continue;
            }
            let parsed = header_of(rel, block, strategy);
            let fault = match parsed {
                Parsed::Ours(Header::Meta { .. }) if block == 0 => None,
                Parsed::Ours(Header::Meta { .. }) => Some("a metapage, which belongs at block 0"),
                Parsed::Broken(what) => Some(what),
                _ if block == 0 => (!is_new(parsed, blocks)).then_some("block 0 is not a metapage"),
                Parsed::Ours(Header::Stripe { owner, page_number }) => {
                    match pages.runs.last_mut() {
                        Some(run) if run.continues_with(owner, block, page_number) => run.count += 1,
                        _ => pages.runs.push(Found {
                            owner,
                            first_block: block,
                            count: 1,
                            first_page: page_number,
                        }),
                    }
                    None
                }
                Parsed::Foreign => None,
            };
            if let Some(what) = fault {
                report.add("page", place, what);
                pages.bad.push(block);
            }
        }
        pg_sys::FreeAccessStrategy(strategy);
        pages
    }
}

/// Whether all pages pass the server's check. Those that do not are reported; `of` begins the report.
pub fn are_sound(rel: Open, of: &str, report: &mut Report) -> bool {
    let mut all = true;
    for block in 0..rel.block_count() {
        pgrx::check_for_interrupts!();
        if !on_disk(rel, block) {
            report.add("page", Place { block: Some(block), ..Place::default() }, format!("{of}{UNSOUND}"));
            all = false;
        }
    }
    all
}

/// What a page says that it is.
unsafe fn header_of(rel: Open, block: BlockNumber, strategy: pg_sys::BufferAccessStrategy) -> Parsed {
    // SAFETY: the page is looked at under pin and shared lock.
    unsafe {
        let buf = buffer::read(rel, block, strategy);
        buffer::lock_shared(buf);
        let page = buffer::page(buf);
        let parsed = match pg_sys::PageIsNew(page) {
            true => Parsed::Foreign,
            false => page_header::parse(buffer::bytes(page)),
        };
        buffer::unlock_release(buf);
        parsed
    }
}

/// Whether block 0 may be empty: a crash can leave the only block of a table empty.
fn is_new(parsed: Parsed, blocks: BlockNumber) -> bool {
    parsed == Parsed::Foreign && blocks == 1
}

/// Whether the block passes the server's check as it is on disk now.
fn on_disk(rel: Open, block: BlockNumber) -> bool {
    /// Aligned as the server wants it for direct I/O (PG_IO_ALIGN_SIZE).
    #[repr(align(4096))]
    struct Image([u8; PAGE_BYTES]);
    let mut image = Image([0; PAGE_BYTES]);
    // SAFETY: the block is below the end of the file, which nobody cuts off; the buffer has a page's size and
    // alignment.
    unsafe {
        (0..AGAIN).any(|time| {
            if time > 0 {
                pg_sys::pg_usleep(10_000);
            }
            relation_file::read_from_disk(rel, block, &mut image.0);
            compat::is_page_sound(image.0.as_mut_ptr().cast(), block)
        })
    }
}
