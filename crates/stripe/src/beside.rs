//! Stripes of the same rows put side by side, as one stripe that has the columns of all.
//!
//! A host that keeps some columns of its rows in one stripe, and others of the same rows in another, reads
//! both as one. Nothing is copied: the bytes of the whole are those of the parts, one behind the other, and
//! the host says where each begins.

use vector::{Error, Result};

use crate::footer::{Footer, MAX_COLUMNS};
use crate::reader::StripeReader;
use crate::summary::{Summary, write_entries};

impl StripeReader {
    /// Opens stripes side by side. Each comes as the bytes of its footer, and with the place of its first
    /// byte among those of the whole. Columns are numbered through, those of the first part first.
    ///
    /// # Errors
    /// `Corrupt` where a footer is bad, `InvalidInput` where the parts do not fit each other (`fits`).
    pub fn beside(parts: &[(&[u8], u64)]) -> Result<Self> {
        let mut whole: Option<Footer> = None;
        for (bytes, start) in parts {
            let part = moved(Footer::read(bytes)?, *start)?;
            match &mut whole {
                None => whole = Some(part),
                Some(whole)
                    if fits(whole, &part) && whole.columns.len() + part.columns.len() <= MAX_COLUMNS =>
                {
                    whole.columns.extend(part.columns);
                    whole.data_length = whole.data_length.max(part.data_length);
                }
                Some(_) => return Err(Error::InvalidInput("stripes of different rows side by side".into())),
            }
        }
        whole.map(Self::of_footer).ok_or_else(|| Error::InvalidInput("no stripe".into()))
    }

    /// Whether the other stripe can lie beside this one: as many rows, in chunks of the same sizes, and
    /// values stored by column.
    pub fn fits(&self, other: &Self) -> bool {
        fits(&self.footer, &other.footer)
    }
}

fn fits(one: &Footer, other: &Footer) -> bool {
    one.row_count == other.row_count
        && one.chunk_rows == other.chunk_rows
        && one.blocks.is_none()
        && other.blocks.is_none()
}

/// A footer whose stripe begins at this byte of a whole.
fn moved(mut footer: Footer, start: u64) -> Result<Footer> {
    let far = || Error::corrupt("a stripe past the last byte");
    let add = |place: u64| place.checked_add(start).ok_or_else(far);
    footer.data_length = add(footer.data_length)?;
    for column in &mut footer.columns {
        column.data_offset = add(column.data_offset)?;
        column.footer = add(column.footer.start)?..add(column.footer.end)?;
    }
    Ok(footer)
}

/// The summary of stripes that lie side by side. It names no orders.
///
/// # Errors
/// `Corrupt` where one is bad, `InvalidInput` where their rows are not as many.
pub fn summaries_beside(parts: &[&[u8]]) -> Result<Vec<u8>> {
    let opened = parts.iter().map(|part| Summary::open(part)).collect::<Result<Vec<_>>>()?;
    let rows = opened.first().map_or(0, Summary::row_count);
    if opened.iter().any(|part| part.row_count() != rows) {
        return Err(Error::InvalidInput("summaries of different rows side by side".into()));
    }
    let mut entries = Vec::new();
    let mut ends = Vec::new();
    for part in &opened {
        for column in 0..part.column_count() {
            entries.extend_from_slice(part.entry(column)?);
            ends.push(
                u32::try_from(entries.len()).map_err(|_| Error::InvalidInput("summary past 4 GiB".into()))?,
            );
        }
    }
    Ok(write_entries(rows, &ends, &entries))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use encodings::NoPglz;
    use vector::{LogicalType, Values, Vector};

    use super::*;
    use crate::writer::{EncodedStripe, StripeOptions, write_stripe};

    fn numbers(first: i32, rows: i32) -> Vector {
        Vector::new(LogicalType::Int32, Values::Int32((first..first + rows).collect()))
    }

    fn stripe(columns: &[Vector], rows: u32, chunk_rows: u32) -> EncodedStripe {
        write_stripe(rows, columns, &StripeOptions { chunk_rows, ..StripeOptions::default() }).unwrap()
    }

    fn footer(stripe: &EncodedStripe) -> &[u8] {
        let start = usize::try_from(stripe.footer_offset).unwrap();
        &stripe.bytes[start..start + stripe.footer_length as usize]
    }

    #[test]
    fn columns_of_all_parts_are_read() {
        let columns = [numbers(5, 2500), numbers(-9, 2500), numbers(70_000, 2500)];
        let (one, two) = (stripe(&columns[..2], 2500, 1000), stripe(&columns[2..], 2500, 1000));
        // The host leaves a gap between the parts.
        let start = one.bytes.len() + 100;
        let mut bytes = one.bytes.clone();
        bytes.resize(start, 0xAA);
        bytes.extend_from_slice(&two.bytes);
        let whole = StripeReader::beside(&[(footer(&one), 0), (footer(&two), start as u64)]).unwrap();
        assert_eq!((whole.column_count(), whole.chunk_count()), (3, 3));
        let rows: Vec<u32> = (0..2500).collect();
        let summary = summaries_beside(&[&one.summary, &two.summary]).unwrap();
        let summary = Summary::open(&summary).unwrap();
        assert_eq!((summary.row_count(), summary.column_count()), (2500, 3));
        for (at, column) in columns.iter().enumerate() {
            assert_eq!(&whole.take(at, &rows, &bytes, &NoPglz).unwrap(), column);
            let (part, place) = if at < 2 { (&one, at) } else { (&two, 0) };
            let own = Summary::open(&part.summary).unwrap().column(place).unwrap();
            assert_eq!(summary.column(at).unwrap(), own);
        }
        assert_eq!(summary.column(3).unwrap(), None);
    }

    #[test]
    fn other_rows_or_chunks_do_not_fit() {
        let parts = [
            stripe(&[numbers(0, 2500)], 2500, 1000),
            stripe(&[numbers(0, 2500)], 2500, 1001),
            stripe(&[numbers(0, 2499)], 2499, 1000),
        ];
        let [first, chunks, rows] = parts.each_ref().map(|part| StripeReader::open(footer(part)).unwrap());
        assert!(first.fits(&first) && !first.fits(&chunks) && !first.fits(&rows));
        for other in &parts[1..] {
            let beside = StripeReader::beside(&[(footer(&parts[0]), 0), (footer(other), 1 << 20)]);
            assert!(matches!(beside, Err(Error::InvalidInput(_))));
        }
        assert!(matches!(
            summaries_beside(&[&parts[0].summary, &parts[2].summary]),
            Err(Error::InvalidInput(_))
        ));
        assert!(matches!(StripeReader::beside(&[(footer(&parts[0]), u64::MAX)]), Err(Error::Corrupt { .. })));
        assert!(matches!(StripeReader::beside(&[]), Err(Error::InvalidInput(_))));
    }
}
