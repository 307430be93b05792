//! What the directory keeps of a stripe: the row count and shortened statistics of each column. With these a
//! scan drops whole stripes without touching their pages.
//!
//! The bytes, in order (v = varint):
//! - version u8, row count v, column count v, width w of the ends u8
//! - for each column the end of its entry in w bytes, counted from the first entry
//! - the entries: type tag u8, fixed width u16 for fixed bytes only, statistics
//! - perhaps orders: their number v, then u64 each
//! - checksum u64
//!
//! The ends let a scan parse only the columns that it asks about. Orders are numbers of the host's that say
//! what the rows are sorted by. A reader that does not ask for them never reads what follows the entries.

use encodings::cursor::Reader;
use vector::{Error, LogicalType, Result};

use crate::cursor::{CHECKSUM_BYTES, Put, ReadMore, seal, unseal};
use crate::footer::MAX_COLUMNS;
use crate::statistics::{ColumnStatistics, SUMMARY_BOUND_BYTES};

const VERSION: u8 = 1;
/// Most orders that are read.
const MAX_ORDERS: usize = 1 << 12;

/// Writes the summary of a stripe of `row_count` rows.
pub fn write_summary(row_count: u32, columns: &[(LogicalType, ColumnStatistics)]) -> Result<Vec<u8>> {
    let mut entries = Vec::new();
    let mut ends = Vec::with_capacity(columns.len());
    for (logical, statistics) in columns {
        entries.push(logical.tag());
        if let LogicalType::FixedBytes(width) = logical {
            entries.extend_from_slice(&width.to_le_bytes());
        }
        statistics.clone().shortened(SUMMARY_BOUND_BYTES).write(*logical, &mut entries);
        ends.push(
            u32::try_from(entries.len()).map_err(|_| Error::InvalidInput("summary past 4 GiB".into()))?,
        );
    }
    Ok(write_entries(row_count, &ends, &entries))
}

/// Writes the summary of entries that are written already, given where each ends.
pub(crate) fn write_entries(row_count: u32, ends: &[u32], entries: &[u8]) -> Vec<u8> {
    let width = if entries.len() <= usize::from(u16::MAX) { 2 } else { 4 };
    let mut out = Vec::with_capacity(entries.len() + ends.len() * width + 24);
    out.push(VERSION);
    out.put_varint(u128::from(row_count));
    out.put_varint(ends.len() as u128);
    out.push(if width == 2 { 2 } else { 4 });
    ends.iter().for_each(|end| out.extend(end.to_le_bytes().into_iter().take(width)));
    out.extend_from_slice(entries);
    seal(&mut out);
    out
}

/// The same summary, with these orders (numbers of the host's) as those that the stripe's rows are in. They
/// replace orders that it named before.
pub fn with_orders(sealed: &[u8], orders: &[u64]) -> Result<Vec<u8>> {
    let summary = Summary::open(sealed)?;
    let behind = summary.entries.len().saturating_sub(summary.end(summary.column_count)?);
    let kept = sealed.len().saturating_sub(CHECKSUM_BYTES + behind);
    let mut out = sealed.get(..kept).unwrap_or(sealed).to_vec();
    if !orders.is_empty() {
        out.put_varint(orders.len() as u128);
        orders.iter().for_each(|order| out.extend_from_slice(&order.to_le_bytes()));
    }
    seal(&mut out);
    Ok(out)
}

/// An opened summary. A column is parsed when it is asked for.
#[derive(Debug, Clone)]
pub struct Summary<'a> {
    row_count: u32,
    column_count: usize,
    width: usize,
    ends: &'a [u8],
    entries: &'a [u8],
}

impl<'a> Summary<'a> {
    /// Checks the checksum and the frame.
    pub fn open(sealed: &'a [u8]) -> Result<Self> {
        let mut cursor = Reader::new(unseal(sealed, "stripe summary")?);
        let version = cursor.u8()?;
        if version != VERSION {
            return Err(Error::Unsupported(format!("stripe summary version {version}")));
        }
        let row_count = cursor.varint32()?;
        let column_count = cursor.varint32()? as usize;
        let width = usize::from(cursor.u8()?);
        if column_count > MAX_COLUMNS || !matches!(width, 2 | 4) {
            return Err(Error::corrupt(format!("summary of {column_count} columns, ends of {width} bytes")));
        }
        let ends = cursor.take(column_count * width)?;
        let entries = cursor.rest();
        Ok(Self { row_count, column_count, width, ends, entries })
    }

    /// Rows in the stripe.
    pub const fn row_count(&self) -> u32 {
        self.row_count
    }

    /// Columns in the stripe. The table may have more by now.
    pub const fn column_count(&self) -> usize {
        self.column_count
    }

    /// Where the entries of columns before `column` end.
    fn end(&self, column: usize) -> Result<usize> {
        let Some(before) = column.checked_sub(1) else { return Ok(0) };
        let mut cursor = Reader::new(self.ends.get(before * self.width..).unwrap_or(&[]));
        Ok(if self.width == 2 { usize::from(cursor.u16()?) } else { cursor.u32()? as usize })
    }

    /// Statistics of one column. `None` if the stripe does not have it. Text bounds are short, so they are
    /// rarely exact.
    pub fn column(&self, column: usize) -> Result<Option<(LogicalType, ColumnStatistics)>> {
        if column >= self.column_count {
            return Ok(None);
        }
        let located = |error: Error| error.at(u32::try_from(column).ok(), None);
        self.parse(column).map(Some).map_err(located)
    }

    /// The orders that the stripe's rows are in. Empty if nothing is known.
    pub fn orders(&self) -> Result<Vec<u64>> {
        let end = self.end(self.column_count)?;
        let Some(bytes) = self.entries.get(end..) else {
            return Err(Error::corrupt(format!("summary entries end at {end} of {}", self.entries.len())));
        };
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        let mut cursor = Reader::new(bytes);
        let count = cursor.varint32()? as usize;
        if count > MAX_ORDERS {
            return Err(Error::corrupt(format!("summary of {count} orders")));
        }
        (0..count).map(|_| cursor.u64()).collect()
    }

    /// The bytes of a column's entry.
    pub(crate) fn entry(&self, column: usize) -> Result<&'a [u8]> {
        let entry = self.end(column)?..self.end(column + 1)?;
        let length = self.entries.len();
        let missing = || Error::corrupt(format!("summary entry at {entry:?} of {length}"));
        self.entries.get(entry.clone()).ok_or_else(missing)
    }

    fn parse(&self, column: usize) -> Result<(LogicalType, ColumnStatistics)> {
        let mut cursor = Reader::new(self.entry(column)?);
        let tag = cursor.u8()?;
        // Only fixed bytes have a width. All other types are known by the tag alone.
        let logical = match LogicalType::from_tag(tag, 0) {
            Some(LogicalType::FixedBytes(_)) => LogicalType::FixedBytes(cursor.u16()?),
            Some(logical) => logical,
            None => return Err(Error::corrupt(format!("type tag {tag} in a summary"))),
        };
        let statistics = ColumnStatistics::read(logical, self.row_count, &mut cursor)?;
        cursor.finish("summary entry")?;
        Ok((logical, statistics))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn orders_are_beside_the_entries() {
        for columns in 0..3 {
            let columns = vec![(LogicalType::Int32, ColumnStatistics::unknown(7, 3)); columns];
            let plain = write_summary(7, &columns).unwrap();
            assert!(Summary::open(&plain).unwrap().orders().unwrap().is_empty());
            let sorted = with_orders(&plain, &[5, u64::MAX]).unwrap();
            assert_eq!(Summary::open(&sorted).unwrap().orders().unwrap(), [5, u64::MAX]);
            let other = with_orders(&sorted, &[6]).unwrap();
            let opened = Summary::open(&other).unwrap();
            assert_eq!(opened.orders().unwrap(), [6]);
            for (column, (_, known)) in columns.iter().enumerate() {
                assert_eq!(&opened.column(column).unwrap().unwrap().1, known);
            }
            assert_eq!(with_orders(&other, &[]).unwrap(), plain);
        }
    }
}
