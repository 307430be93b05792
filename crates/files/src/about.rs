//! What is known of a column in some rows of a file, for whoever looks into one: sizes, encodings,
//! statistics.
//!
//! Made for a stripe by `column::OpenStripe::about` and for a row group by `ParquetFile::about`. Those of a
//! whole file are the sum of them (`About::add`).
//!
//! Invariant: no value is below `min` or above `max`.

use stripe::{Bound, ColumnStatistics};

use crate::column::Column;
use crate::text;

/// What is known of a column in some rows of a file.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Stripes or row groups that this is about.
    pub parts: u64,
    /// Rows.
    pub rows: u64,
    /// Rows that are older than the column. A file has no value for them; they count as NULL.
    pub older: u64,
    /// Rows that are NULL, as far as they are counted.
    pub nulls: u64,
    /// Rows of which it is not known how many are NULL.
    pub uncounted: u64,
    /// Decimals that are in neither bound: NaN, infinities, those that 128 bits do not hold.
    pub aside: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// How many column chunks have which encoding, most first.
    pub encodings: Vec<(String, u64)>,
    /// What compressed some of the bytes.
    pub codecs: Vec<String>,
    /// Estimated number of distinct values that are not NULL, of the part that has most.
    pub distinct: Option<u32>,
    /// The bounds, as those of one row. None: there is no value.
    bounds: Option<ColumnStatistics>,
}

impl About {
    /// Of so many rows that are older than the column.
    pub fn of_older(rows: u64) -> Self {
        Self { parts: 1, rows, older: rows, nulls: rows, ..Self::default() }
    }

    /// Of rows with these statistics, whose place in the file is still to be told. None: nothing is known.
    pub fn of(rows: u64, statistics: Option<&ColumnStatistics>) -> Self {
        let about = Self { parts: 1, rows, ..Self::default() };
        let Some(known) = statistics else {
            return Self { uncounted: rows, bounds: Some(ColumnStatistics::unknown(1, 0)), ..about };
        };
        let bounds = (known.value_count() > known.side_rows).then(|| ColumnStatistics {
            rows: 1,
            null_count: 0,
            side_rows: 0,
            ..known.clone()
        });
        let (nulls, aside) = (known.null_count.into(), known.side_rows.into());
        Self { nulls, aside, distinct: known.distinct, bounds, ..about }
    }

    /// Counts a chunk of an encoding.
    pub fn add_chunk(&mut self, encoding: &str) {
        self.add_chunks(encoding, 1);
    }

    /// Names a codec, unless it is named already.
    pub fn add_codec(&mut self, codec: &str) {
        if !self.codecs.iter().any(|known| known == codec) {
            self.codecs.push(codec.into());
        }
    }

    /// Adds what is known of other rows of the column.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.parts, other.parts),
            (&mut self.rows, other.rows),
            (&mut self.older, other.older),
            (&mut self.nulls, other.nulls),
            (&mut self.uncounted, other.uncounted),
            (&mut self.aside, other.aside),
            (&mut self.bytes, other.bytes),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        other.encodings.iter().for_each(|(name, chunks)| self.add_chunks(name, *chunks));
        other.codecs.iter().for_each(|codec| self.add_codec(codec));
        self.distinct = self.distinct.max(other.distinct);
        match (&mut self.bounds, &other.bounds) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, theirs) => mine.clone_from(theirs),
            (Some(_), None) => {}
        }
    }

    /// The smallest value in words, or a bound below it. None: not known, or there is no value.
    pub fn min(&self, column: &Column) -> Option<String> {
        let bounds = self.bounds.as_ref()?;
        self.text(bounds.min.as_ref()?, column)
    }

    /// The greatest value in words, or a bound above it. None: not known, or there is no value.
    pub fn max(&self, column: &Column) -> Option<String> {
        let bounds = self.bounds.as_ref()?;
        self.text(bounds.max.as_ref()?, column)
    }

    fn add_chunks(&mut self, encoding: &str, chunks: u64) {
        match self.encodings.iter_mut().find(|(name, _)| name == encoding) {
            Some((_, count)) => *count += chunks,
            None => self.encodings.push((encoding.into(), chunks)),
        }
        self.encodings.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    }

    fn text(&self, bound: &Bound, column: &Column) -> Option<String> {
        let scales = self.bounds.as_ref().and_then(|bounds| bounds.scales);
        text::of_scalar(&bound.value, scales.map_or(0, |scales| scales.display_min), column)
    }
}

#[cfg(test)]
mod tests {
    use super::{About, Column};
    use stripe::{Bound, ColumnStatistics};
    use vector::{LogicalType, Scalar};

    fn of(rows: u32, nulls: u32, ends: Option<(i64, i64)>) -> About {
        let bound = |value| Bound { value: Scalar::Int(value), exact: true };
        let known = ColumnStatistics {
            min: ends.map(|(min, _)| bound(min)),
            max: ends.map(|(_, max)| bound(max)),
            distinct: Some(rows - nulls),
            ..ColumnStatistics::unknown(rows, nulls)
        };
        About::of(rows.into(), Some(&known))
    }

    fn ends(about: &About) -> (Option<String>, Option<String>) {
        let column =
            Column { number: 1, name: "a".into(), declared: "bigint".into(), logical: LogicalType::Int64 };
        (about.min(&column), about.max(&column))
    }

    #[test]
    fn a_file_has_the_outer_bounds_of_its_parts() {
        let mut all = About::default();
        for part in [of(4, 4, None), of(5, 1, Some((3, 9))), About::of_older(7), of(9, 0, Some((-2, 5)))] {
            all.add(&part);
        }
        assert_eq!((all.parts, all.rows, all.nulls, all.older), (4, 25, 12, 7));
        assert_eq!(all.distinct, Some(9));
        assert_eq!(ends(&all), (Some("-2".into()), Some("9".into())));
        // Of a part nothing is known.
        all.add(&About::of(3, None));
        assert_eq!((all.uncounted, ends(&all)), (3, (None, None)));
    }

    #[test]
    fn counts_do_not_end_at_32_bits() {
        let mut all = About::default();
        (0..3).for_each(|_| all.add(&of(u32::MAX, u32::MAX, None)));
        all.add(&of(u32::MAX, 0, Some((1, 2))));
        assert_eq!((all.rows, all.nulls), (4 * u64::from(u32::MAX), 3 * u64::from(u32::MAX)));
        assert_eq!(ends(&all), (Some("1".into()), Some("2".into())));
    }

    #[test]
    fn encodings_are_counted_and_sorted() {
        let mut all = About::default();
        for encoding in ["plain", "constant", "constant"] {
            let mut part = About::of_older(1);
            part.add_chunk(encoding);
            part.add_codec("zstd");
            all.add(&part);
        }
        assert_eq!(all.encodings, [("constant".to_owned(), 2), ("plain".to_owned(), 1)]);
        assert_eq!(all.codecs, ["zstd"]);
    }
}
