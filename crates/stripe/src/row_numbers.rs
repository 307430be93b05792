//! Which of the row numbers that were ever handed out are in use.
//!
//! A host reads them from its directory of stripes. What it keeps under the other numbers below the counter
//! (entries of indexes, notes about rows) can go. Invariant: a number below the counter that no range has is
//! gone for good, as numbers are handed out once. So the host has to read the ranges of every stripe that
//! anybody may still see, and those that are reserved.

/// Row numbers of one table.
#[derive(Debug)]
pub struct RowNumbers {
    counter: u64,
    /// The ranges in use, merged and ascending.
    ranges: Vec<(u64, u64)>,
}

impl RowNumbers {
    /// `counter` is the next number to be handed out. The ranges in use may come in any order.
    pub fn new(counter: u64, mut in_use: Vec<(u64, u64)>) -> Self {
        in_use.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::with_capacity(in_use.len());
        for (start, end) in in_use {
            match ranges.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => ranges.push((start, end)),
            }
        }
        Self { counter, ranges }
    }

    /// Adds further ranges that are in use.
    pub fn add(&mut self, in_use: impl Iterator<Item = (u64, u64)>) {
        let ranges = std::mem::take(&mut self.ranges);
        *self = Self::new(self.counter, ranges.into_iter().chain(in_use).collect());
    }

    /// Whether nobody has a row of this number any more.
    pub fn is_gone(&self, row: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= row);
        let in_use = after.checked_sub(1).is_some_and(|at| row < self.ranges[at].1);
        row < self.counter && !in_use
    }

    /// The ranges of all numbers that are gone, ascending.
    pub fn gone(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let starts = std::iter::once(0).chain(self.ranges.iter().map(|&(_, end)| end));
        let ends = self.ranges.iter().map(|&(start, _)| start).chain(std::iter::once(self.counter));
        starts.zip(ends.map(|end| end.min(self.counter))).filter(|(start, end)| start < end)
    }
}

#[cfg(test)]
mod tests {
    use super::RowNumbers;

    #[test]
    fn gone_is_what_no_range_has() {
        let gone = |counter, ranges: &[(u64, u64)]| {
            let numbers = RowNumbers::new(counter, ranges.to_vec());
            let gone: Vec<_> = numbers.gone().collect();
            for row in 0..counter + 20 {
                assert_eq!(numbers.is_gone(row), gone.iter().any(|&(from, to)| (from..to).contains(&row)));
            }
            gone
        };
        assert_eq!(gone(0, &[]), []);
        assert_eq!(gone(10, &[]), [(0, 10)]);
        assert_eq!(gone(100, &[(30, 40), (0, 10), (5, 20), (40, 90)]), [(20, 30), (90, 100)]);
        assert_eq!(gone(50, &[(10, 50), (20, 30)]), [(0, 10)]);
        assert_eq!(gone(50, &[(0, 60)]), []);
        assert_eq!(gone(50, &[(0, 10), (60, 70)]), [(10, 50)]);
        let mut numbers = RowNumbers::new(50, vec![(10, 20)]);
        numbers.add([(20, 30), (0, 5)].into_iter());
        assert_eq!(numbers.gone().collect::<Vec<_>>(), [(5, 10), (30, 50)]);
    }
}
