//! The page index of a column in a row group: where its pages lie, and bounds of their values.
//!
//! Called by `group`. A page index has two parts. The offset index says where each page lies and at which row
//! it begins, so that only wanted pages are read (`source`). The column index has bounds of each page; chunks
//! of a scan get those of the pages that they touch.
//!
//! Invariant: an index that contradicts itself or the footer counts as none. What is left is as true as
//! statistics are. That a page has the rows that its place promises, is looked at when it is read.

use std::ops::Range;

use parquet::basic::{ColumnOrder, Type};
use parquet::data_type::{
    BoolType, ByteArray, DataType, DoubleType, FixedLenByteArray, FloatType, Int32Type, Int64Type,
};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::column_index::{ColumnIndexMetaData, PrimitiveColumnIndex};
use parquet::file::page_index::index_reader::{decode_column_index, decode_offset_index};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::statistics::{Statistics, ValueStatistics};
use stripe::{Bound, ColumnStatistics, StripeBytes};
use vector::{Result, Scalar};

use super::bounds;
use super::file::ReadColumn;
use super::hybrid::varint;
use super::read::guarded;
use crate::FieldKind;

/// The pages of a column.
#[derive(Debug)]
pub struct PagePlaces {
    /// Where they lie, one after the other.
    pub places: Vec<PageLocation>,
    /// The first row of each, and the rows of the row group.
    starts: Vec<u32>,
    /// The first byte of the column and of each page, and the end of the last one.
    bounds: Vec<u64>,
}

impl PagePlaces {
    /// Reads the offset index of a column whose bytes are these. None where there is none that can be used.
    ///
    /// # Errors
    /// Those of `bytes`.
    pub fn read(
        metadata: &ColumnChunkMetaData,
        stored: &Range<u64>,
        rows: u32,
        bytes: &dyn StripeBytes,
    ) -> Result<Option<Self>> {
        let Some(range) = guarded(|| Ok(metadata.offset_index_range())).ok().flatten() else {
            return Ok(None);
        };
        let mut index = Vec::new();
        bytes.read(range, &mut index)?;
        if !is_list_there(&index) {
            return Ok(None);
        }
        let decoded = guarded(|| Ok(decode_offset_index(&index)?)).ok();
        Ok(decoded.and_then(|decoded| Self::of(decoded.page_locations().clone(), stored, rows)))
    }

    fn of(places: Vec<PageLocation>, stored: &Range<u64>, rows: u32) -> Option<Self> {
        let mut starts = Vec::with_capacity(places.len() + 1);
        let mut bounds = vec![stored.start];
        let mut end = stored.start;
        for place in &places {
            let start = u64::try_from(place.offset).ok().filter(|start| *start >= end)?;
            bounds.push(start);
            end = start.checked_add(u64::try_from(place.compressed_page_size).ok()?)?;
            starts.push(u32::try_from(place.first_row_index).ok()?);
        }
        starts.push(rows);
        bounds.push(end);
        let is_whole = starts.first() == Some(&0) && starts.is_sorted_by(|one, next| one < next);
        (is_whole && end <= stored.end).then_some(Self { places, starts, bounds })
    }

    /// The pages that have some of these rows.
    pub fn of_rows(&self, rows: &Range<u32>) -> Range<usize> {
        let first = self.starts.partition_point(|start| *start <= rows.start).saturating_sub(1);
        let end = self.starts.partition_point(|start| *start < rows.end).min(self.places.len());
        first..end.max(first)
    }

    /// The bytes of some units: what comes before the first page is one, where a dictionary is, and each
    /// page.
    pub fn bytes_of(&self, units: Range<usize>) -> Range<u64> {
        let bound = |unit: usize| self.bounds.get(unit).copied().unwrap_or(0);
        bound(units.start)..bound(units.end)
    }

    fn rows(&self, page: usize) -> Option<u32> {
        self.starts.get(page + 1)?.checked_sub(*self.starts.get(page)?)
    }
}

/// Whether an offset index has no fewer bytes than pages. The crate asks memory for all of them at once.
/// The index begins with the mark of its first field. That is a list, whose length is in four bits or, where
/// these are full, in a varint.
fn is_list_there(index: &[u8]) -> bool {
    let pages = match index {
        [0x19, header, rest @ ..] if header >> 4 == 15 => varint(rest).map(|(pages, _)| pages),
        [0x19, header, ..] => Some(u64::from(header >> 4)),
        _ => None,
    };
    pages.is_some_and(|pages| pages <= index.len() as u64)
}

/// Reads the column index: statistics of chunks of rows, which are those of all pages that have some of
/// their rows. `group` are those of the row group. None where there is none that can be used.
///
/// # Errors
/// Those of `bytes`.
pub fn statistics(
    metadata: &ColumnChunkMetaData,
    column: &ReadColumn,
    order: ColumnOrder,
    group: &ColumnStatistics,
    pages: &PagePlaces,
    chunks: impl Iterator<Item = Range<u32>>,
    bytes: &dyn StripeBytes,
) -> Result<Option<Vec<ColumnStatistics>>> {
    let range = guarded(|| Ok(metadata.column_index_range())).ok().flatten();
    let Some(range) = range.filter(|_| bounds::is_agreed(order)) else { return Ok(None) };
    let mut stored = Vec::new();
    bytes.read(range, &mut stored)?;
    let of_pages = guarded(|| {
        let index = decode_column_index(&stored, metadata.column_type())?;
        let is_whole = index.num_pages() == pages.places.len() as u64;
        let all = (0..pages.places.len()).map(|page| of_page(&index, page, column, group, pages.rows(page)?));
        Ok(if is_whole { all.collect::<Option<Vec<_>>>() } else { None })
    });
    let Some(of_pages) = of_pages.ok().flatten() else { return Ok(None) };
    let nulls: u64 = of_pages.iter().map(|page| u64::from(page.null_count)).sum();
    if nulls != u64::from(group.null_count) {
        return Ok(None);
    }
    let of_chunk = |rows: Range<u32>| {
        let mut pages = of_pages.get(pages.of_rows(&rows)).unwrap_or(&[]).iter();
        let mut all = pages.next()?.clone();
        pages.for_each(|page| all.merge(page));
        if all.value_count() > 0 {
            // What holds for all rows holds for these.
            all.min = all.min.or_else(|| group.min.clone());
            all.max = all.max.or_else(|| group.max.clone());
        }
        Some(all)
    };
    Ok(chunks.map(of_chunk).collect())
}

/// Statistics of a page of so many rows. None where they contradict themselves.
fn of_page(
    index: &ColumnIndexMetaData,
    page: usize,
    column: &ReadColumn,
    group: &ColumnStatistics,
    rows: u32,
) -> Option<ColumnStatistics> {
    let nulls = match group.null_count {
        0 => 0,
        _ => u32::try_from(index.null_count(page)?).ok()?,
    };
    let has_values = !index.is_null_page(page);
    if nulls > rows || !has_values && nulls < rows {
        return None;
    }
    let mut known = ColumnStatistics::unknown(rows, nulls);
    known.scales = group.scales;
    if has_values {
        let bound = |value: Option<Scalar>| value.map(|value| Bound { value, exact: false });
        let (min, max) = of_index(index, page).map_or((None, None), |ends| bounds::ends(&ends, column));
        // A writer may have cut decimals whose length varies.
        let is_whole = !(matches!(column.kind, FieldKind::Decimal { .. })
            && column.description.physical_type() == Type::BYTE_ARRAY);
        (known.min, known.max) = (bound(min.filter(|_| is_whole)), bound(max.filter(|_| is_whole)));
    }
    Some(known)
}

/// What an index says of a page, as the statistics of a row group say it.
fn of_index(index: &ColumnIndexMetaData, page: usize) -> Option<Statistics> {
    fn of<D: DataType>(index: &PrimitiveColumnIndex<D::T>, page: usize) -> Statistics {
        let (min, max) = (index.min_value(page).cloned(), index.max_value(page).cloned());
        Statistics::from(ValueStatistics::new(min, max, None, None, false))
    }
    let bytes = |value: Option<&[u8]>| value.map(|bytes| ByteArray::from(bytes.to_vec()));
    let fixed = |value: Option<&[u8]>| bytes(value).map(FixedLenByteArray::from);
    Some(match index {
        ColumnIndexMetaData::BOOLEAN(index) => of::<BoolType>(index, page),
        ColumnIndexMetaData::INT32(index) => of::<Int32Type>(index, page),
        ColumnIndexMetaData::INT64(index) => of::<Int64Type>(index, page),
        ColumnIndexMetaData::FLOAT(index) => of::<FloatType>(index, page),
        ColumnIndexMetaData::DOUBLE(index) => of::<DoubleType>(index, page),
        ColumnIndexMetaData::BYTE_ARRAY(index) => {
            let (min, max) = (bytes(index.min_value(page)), bytes(index.max_value(page)));
            Statistics::from(ValueStatistics::new(min, max, None, None, false))
        }
        ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(index) => {
            let (min, max) = (fixed(index.min_value(page)), fixed(index.max_value(page)));
            Statistics::from(ValueStatistics::new(min, max, None, None, false))
        }
        ColumnIndexMetaData::INT96(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn places(rows: &[(i64, i32, i64)]) -> Option<PagePlaces> {
        let of = |&(offset, compressed_page_size, first_row_index): &(i64, i32, i64)| PageLocation {
            offset,
            compressed_page_size,
            first_row_index,
        };
        PagePlaces::of(rows.iter().map(of).collect(), &(100..200), 50)
    }

    #[test]
    fn pages_of_rows_are_found() {
        let pages = places(&[(110, 20, 0), (130, 30, 10), (170, 30, 40)]).unwrap();
        for (rows, expected) in [
            (0..1, 0..1),
            (9..10, 0..1),
            (9..11, 0..2),
            (10..40, 1..2),
            (39..41, 1..3),
            (0..50, 0..3),
            (49..50, 2..3),
        ] {
            assert_eq!(pages.of_rows(&rows), expected, "{rows:?}");
        }
        assert_eq!((pages.bytes_of(0..1), pages.bytes_of(1..3)), (100..110, 110..170));
        assert_eq!(pages.bytes_of(3..4), 170..200);
        assert_eq!([0, 1, 2, 3].map(|page| pages.rows(page)), [Some(10), Some(30), Some(10), None]);
    }

    #[test]
    fn places_that_contradict_themselves_are_none() {
        assert!(places(&[]).is_none(), "no page");
        assert!(places(&[(110, 20, 1)]).is_none(), "rows before the first page");
        assert!(places(&[(110, 20, 0), (130, 30, 0)]).is_none(), "a page without rows");
        assert!(places(&[(110, 20, 0), (130, 30, 50)]).is_none(), "a page past the rows");
        assert!(places(&[(110, 20, 0), (129, 30, 10)]).is_none(), "pages that overlap");
        assert!(places(&[(99, 20, 0)]).is_none() && places(&[(110, 91, 0)]).is_none(), "other bytes");
        assert!(places(&[(110, -1, 0)]).is_none() && places(&[(-1, 2, 0)]).is_none());
    }

    #[test]
    fn a_list_longer_than_its_bytes_is_none() {
        assert!(is_list_there(&[0x19, 0x2c, 0, 0]));
        assert!(!is_list_there(&[0x19, 0x5c, 0, 0]));
        assert!(!is_list_there(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]));
        assert!(is_list_there(&[0x19, 0xfc, 0x04, 0, 0]));
        assert!(!is_list_there(&[0x18, 0x2c, 0, 0]) && !is_list_there(&[]));
    }
}
