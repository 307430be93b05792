//! Compares the directory with the pages, and each stripe with itself.
//!
//! Called by `verify` with the pages that `pages` found. It checks:
//! - The stripes that the snapshot sees do not overlap in rows or blocks, and their rows are below the
//!   counter of row numbers.
//! - Each of their blocks is the page that it should be.
//! - Some version of some directory row names each page whose writer has committed.
//! - Every chunk can be decoded, and is what its statistics claim (`stripe::verify_chunk`).
//!
//! Invariant: a stripe with a bad page is not decoded, because it is reported already.

use pgrx::pg_sys::{self, Snapshot};
use stripe::{Broken, Finding, Layout, StripeReader};
use vector::Error;

use super::pages::{Found, Pages};
use super::report::{Place, Report};
use crate::compat;
use crate::host::error;
use crate::host::relation::Open;
use crate::storage::change::gone_rows;
use crate::storage::directory::entries;
use crate::storage::directory::{self, StripeEntry};
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::file::page_header::PAYLOAD_BYTES;
use crate::storage::read::stripe_on_pages::{self, Pages as StripePages};

/// Checks all stripes.
///
/// # Safety
/// The snapshot is registered.
pub unsafe fn check(
    rel: Open,
    snapshot: Snapshot,
    storage_id: u64,
    next_row: u64,
    pages: &Pages,
    report: &mut Report,
) {
    // SAFETY: the snapshot is registered.
    unsafe {
        let stripes = directory::visible(storage_id, snapshot);
        check_directory(&stripes, next_row, pages.blocks, report);
        for entry in &stripes {
            let place = Place { stripe: Some(entry.first_row), ..Place::default() };
            if pages.first_bad(entry.run.first_block, entry.run.block_count).is_some() {
                continue;
            }
            match misplaced(entry, pages) {
                Some(block) => report.add(
                    "stripe",
                    Place { block: Some(block), ..place },
                    format!(
                        "the directory says that block {block} is page {} of the stripe; it is not",
                        block - entry.run.first_block
                    ),
                ),
                None => check_stripe(rel, entry, place, report),
            }
        }
        check_unclaimed(storage_id, pages, report);
        let unknown = gone_rows::beyond(storage_id, next_row);
        if unknown > 0 {
            let detail = format!(
                "changes of {unknown} rows are noted, or more, that lie at or beyond the counter of row numbers, {next_row}"
            );
            report.add("change", Place::default(), detail);
        }
    }
}

fn check_directory(stripes: &[StripeEntry], next_row: u64, blocks: u32, report: &mut Report) {
    let mut fault = |entry: &StripeEntry, detail: String| {
        let place = Place { stripe: Some(entry.first_row), ..Place::default() };
        report.add("directory", place, detail)
    };
    for entry in stripes {
        let (run, end) = (entry.run, entry.end_row());
        let pages = entry.byte_length.div_ceil(PAYLOAD_BYTES as u64);
        if end > next_row {
            fault(entry, format!("its rows end at number {end}, but the counter stands at {next_row}"));
        }
        if u64::from(run.first_block) + u64::from(run.block_count) > u64::from(blocks) || run.first_block == 0
        {
            fault(
                entry,
                format!(
                    "{} blocks from {} on are not all in the file of {blocks}",
                    run.block_count, run.first_block
                ),
            );
        }
        if u64::from(run.block_count) != pages {
            fault(
                entry,
                format!("{} bytes take {pages} pages, it has {}", entry.byte_length, run.block_count),
            );
        }
        if entry.row_count == 0 {
            fault(entry, "a stripe without rows".into());
        }
    }
    for pair in stripes.windows(2) {
        if let [before, entry] = pair
            && before.end_row() > entry.first_row
        {
            fault(entry, format!("its rows overlap those of the stripe starting at {}", before.first_row));
        }
    }
    let mut by_block: Vec<&StripeEntry> = stripes.iter().collect();
    by_block.sort_by_key(|entry| entry.run.first_block);
    for pair in by_block.windows(2) {
        if let [before, entry] = pair
            && u64::from(before.run.first_block) + u64::from(before.run.block_count)
                > u64::from(entry.run.first_block)
        {
            fault(entry, format!("its blocks overlap those of the stripe starting at {}", before.first_row));
        }
    }
}

/// The first block of the stripe that is not the page it should be.
fn misplaced(entry: &StripeEntry, pages: &Pages) -> Option<u32> {
    let (mut block, end) = (entry.run.first_block, entry.run.end());
    while block < end {
        let after = pages.runs.partition_point(|found| found.first_block <= block);
        let found = after.checked_sub(1).and_then(|at| pages.runs.get(at)).filter(|found| {
            let within = block - found.first_block;
            within < found.count
                && found.owner.storage_id == entry.storage_id
                && found.owner.first_row == entry.first_row
                && found.first_page.checked_add(within) == block.checked_sub(entry.run.first_block)
        });
        match found {
            Some(found) => block = found.first_block + found.count,
            None => return Some(block),
        }
    }
    None
}

/// Reads and decodes all of a stripe.
fn check_stripe(rel: Open, entry: &StripeEntry, place: Place, report: &mut Report) {
    // SAFETY: the strategy is freed after the last read by it.
    unsafe {
        let reader = match stripe_on_pages::open_anew(rel, entry) {
            Ok(reader) => reader,
            Err(Error::Corrupt { detail, .. }) => return report.add("stripe", place, detail),
            Err(Error::Unsupported(what)) => {
                return report.add("stripe", place, format!("this build does not know: {what}"));
            }
            Err(other) => error::raise_plain(other),
        };
        let strategy = pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD);
        let bytes = StripePages::by(rel, entry, strategy);
        let names: Vec<String> = (0..reader.column_count()).map(|column| column_name(rel, column)).collect();
        let mut check = |column: usize, chunk: u32| {
            pgrx::check_for_interrupts!();
            let found = stripe::verify_chunk(&reader, column, chunk, &bytes, &ServerCodecs);
            tell(report, place, found, &format!("{}, chunk {chunk}", names[column]));
        };
        // In the order of the bytes.
        match reader.layout() {
            Layout::Columns => {
                for column in 0..names.len() {
                    (0..reader.chunk_count()).for_each(|chunk| check(column, chunk));
                }
            }
            Layout::Blocks => {
                for chunk in 0..reader.chunk_count() {
                    // As long as one column has the bytes of its blocks, the others need not read them again.
                    let _held = reader.read_chunk_unverified(0, chunk, &bytes, &ServerCodecs);
                    (0..names.len()).for_each(|column| check(column, chunk));
                }
            }
        }
        for (column, name) in names.iter().enumerate() {
            tell(report, place, stripe::verify_column(&reader, column, &entry.summary, &bytes), name);
        }
        check_types(rel, &reader, place, report);
        pg_sys::FreeAccessStrategy(strategy);
    }
}

fn tell(report: &mut Report, place: Place, found: vector::Result<Option<Finding>>, part: &str) {
    match found {
        Ok(None) => {}
        Ok(Some(Finding { broken, detail })) => {
            let kind = match broken {
                Broken::Bytes => "chunk",
                Broken::Statistics => "statistics",
                Broken::Bloom => "bloom filter",
            };
            report.add(kind, place, format!("{part}: {detail}"))
        }
        Err(problem) => error::raise_plain(problem),
    }
}

/// Whether the table's columns can be built from the stripe's.
fn check_types(rel: Open, reader: &StripeReader, place: Place, report: &mut Report) {
    for column in crate::table_am::read::cold_rows::unfit_columns(rel, reader) {
        let detail = format!("{}: the stripe holds values of another type", column_name(rel, column));
        report.add("stripe", place, detail);
    }
}

fn column_name(rel: Open, column: usize) -> String {
    let name = u32::try_from(column).ok().and_then(|column| rel.column_name(column));
    name.map_or_else(|| format!("column number {}", column + 1), |name| format!("column \"{name}\""))
}

/// Pages that a committed transaction wrote and that no version of any row of the directory names.
fn check_unclaimed(storage_id: u64, pages: &Pages, report: &mut Report) {
    // The directory is read after the pages. So it has the rows of a writer that was at work then and has
    // committed since.
    let mut named: Vec<_> =
        entries::all_by_heap(storage_id).into_iter().map(|(entry, _)| entry.run).collect();
    named.sort_unstable_by_key(|run| run.first_block);
    for &Found { owner, first_block, count, .. } in &pages.runs {
        let after = named.partition_point(|run| run.first_block <= first_block);
        let before = after.checked_sub(1).and_then(|at| named.get(at));
        if before.is_some_and(|run| first_block - run.first_block < run.block_count) {
            continue;
        }
        let place = Place { stripe: Some(owner.first_row), block: Some(first_block), tid: None };
        if owner.storage_id != storage_id {
            report.add(
                "page",
                place,
                format!("{count} pages of another table's storage, {}", owner.storage_id),
            );
        } else if committed(owner.writer) {
            report.add(
                    "unclaimed",
                    place,
                    format!(
                        "no row of the directory names {count} pages that transaction {} wrote, which has committed: left by a rollback to a savepoint or of a stripe that was replaced. VACUUM of engine.stripe and of the table frees them; what stays then, with no older transaction open, is of lost rows",
                        owner.writer
                    ),
                );
        }
    }
}

/// Whether the transaction with this full id has committed, or is too old to tell.
fn committed(writer: u64) -> bool {
    // SAFETY: plain look-ups of the transaction system; it is asked only about what it still remembers.
    unsafe {
        let next = pg_sys::ReadNextFullTransactionId().value;
        let xid = pg_sys::TransactionId::from(writer as u32);
        if writer >= next || pg_sys::TransactionIdIsInProgress(xid) {
            return false;
        }
        let forgotten = next - writer > u64::from(u32::MAX / 2)
            || pg_sys::TransactionIdPrecedes(xid, compat::oldest_known_transaction());
        forgotten || pg_sys::TransactionIdDidCommit(xid)
    }
}
