//! What is known of the stripes of one load.
//!
//! ```text
//! magic "CLSG", version u8, columns v, the number of each v, stripes v,
//! per stripe: offset v, length v, footer offset v, footer length v, rows v, summary (length v, bytes);
//! checksum u64
//! ```
//! v = varint. A stripe has the columns of these numbers, in this order; the table may have more by now.
//! Offsets of stripes count from the file's first byte, those of footers from the stripe's.

use std::ops::Range;
use std::sync::Arc;

use encodings::cursor::Reader;

use super::footer::MAX_COLUMNS;
use super::sealed::{self, range};
use crate::Result;

const MAGIC: [u8; 4] = *b"CLSG";
const VERSION: u8 = 1;

/// A stripe of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripePlace {
    /// Its bytes in the file.
    pub bytes: Range<u64>,
    /// Its footer, counted from its first byte.
    pub footer: Range<u64>,
    /// Its rows.
    pub rows: u32,
    /// Statistics, as `stripe::write_summary` makes them.
    pub summary: Box<[u8]>,
    /// The numbers of its columns.
    pub columns: Arc<[u32]>,
}

/// The sealed bytes. All stripes have these columns.
pub fn write(columns: &[u32], stripes: &[StripePlace]) -> Vec<u8> {
    let mut out = sealed::begin(MAGIC, VERSION);
    out.varint(columns.len() as u64);
    columns.iter().for_each(|&number| out.varint(number.into()));
    out.varint(stripes.len() as u64);
    for stripe in stripes {
        out.varint(stripe.bytes.start);
        out.varint(stripe.bytes.end - stripe.bytes.start);
        out.varint(stripe.footer.start);
        out.varint(stripe.footer.end - stripe.footer.start);
        out.varint(stripe.rows.into());
        out.child(&stripe.summary);
    }
    sealed::end(out)
}

/// Parses sealed bytes. What it gives lies before byte `end` of the file.
///
/// # Errors
/// `Malformed` for bytes that break the format, `Unsupported` for a newer version.
pub fn read(sealed: &[u8], end: u64) -> Result<Vec<StripePlace>> {
    sealed::read(sealed, MAGIC, "segment", VERSION, |_, cursor| parse(cursor, end))
}

fn parse(cursor: &mut Reader<'_>, end: u64) -> vector::Result<Vec<StripePlace>> {
    let count = cursor.count(MAX_COLUMNS, "columns")?;
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(u32::try_from(cursor.varint()?).unwrap_or(u32::MAX));
    }
    let columns: Arc<[u32]> = columns.into();
    // A stripe takes six bytes at least.
    let count = cursor.count(cursor.remaining() / 6, "stripes")?;
    let mut stripes = Vec::with_capacity(count);
    for _ in 0..count {
        let bytes = range(cursor, end)?;
        let footer = range(cursor, bytes.end - bytes.start)?;
        let rows = u32::try_from(cursor.varint()?).map_err(|_| vector::Error::corrupt("rows of a stripe"))?;
        let summary = cursor.child()?.rest().into();
        stripes.push(StripePlace { bytes, footer, rows, summary, columns: Arc::clone(&columns) });
    }
    Ok(stripes)
}
