//! An order for tables that name none: by the column that grows as rows arrive.
//!
//! Sessions that insert singly fill pages side by side, so in the order of places a number from a sequence,
//! or a time, goes back and forth, and with it whatever depends on it. Sorted by that column the rows
//! compress as if they had been loaded at once, and its bounds tell stripes apart. It is found in a sample:
//! neighbours on pages, or rows from the beginning to the end of each stripe, of which all but a few ascend.
//! Where several columns do, the first is taken of those that do so about as often as the best one. So
//! stripes that somebody has loaded in another order keep it. Invariant: a hint for the order of rows and for
//! nothing else.

/// Pairs that are looked at, about.
const SAMPLE: usize = 1024;
/// One in so many may not ascend.
const FEW: usize = 8;
/// How much more often another may ascend that comes after it.
const CLOSE: usize = 32;
/// Fewest pairs that tell anything.
const FEWEST: usize = 16;

/// What is known of a column.
#[derive(Debug, Default, Clone)]
struct Column {
    last: Option<i64>,
    ascents: usize,
}

/// How often columns grow from one row of a sample to the next.
#[derive(Debug)]
pub struct Ascents {
    columns: Vec<Column>,
    pairs: usize,
    /// The run has had a row.
    begun: bool,
}

impl Ascents {
    /// Of so many columns, before any row.
    pub fn new(columns: usize) -> Self {
        Self { columns: vec![Column::default(); columns], pairs: 0, begun: false }
    }

    /// The next row begins a run, whose rows are in an order of their own.
    pub fn begin_run(&mut self) {
        self.columns.iter_mut().for_each(|column| column.last = None);
        self.begun = false;
    }

    /// The next row of the run, by the value of each column. None: NULL.
    pub fn row(&mut self, mut value: impl FnMut(usize) -> Option<i64>) {
        self.pairs += usize::from(self.begun);
        self.begun = true;
        for (index, column) in self.columns.iter_mut().enumerate() {
            let value = value(index);
            column.ascents += usize::from(column.last.zip(value).is_some_and(|(last, value)| last < value));
            column.last = value;
        }
    }

    /// The column to sort by; None where none grows. It is the first that ascends about as often as the best
    /// one: a number that starts again now and then may have been lucky.
    pub fn growing(&self) -> Option<usize> {
        let best = self.columns.iter().map(|column| column.ascents).max()?;
        let grows = self.pairs >= FEWEST && best >= self.pairs - self.pairs / FEW;
        self.columns.iter().position(|column| grows && column.ascents >= best - best / CLOSE)
    }
}

/// Samples of rows in pages: neighbours, here and there.
pub fn neighbours<T>(rows: &[T]) -> Vec<&[T]> {
    /// Rows of a sample.
    const LENGTH: usize = 9;
    let step = (rows.len() / (SAMPLE / LENGTH)).max(LENGTH);
    rows.chunks(step).map(|part| part.get(..LENGTH).unwrap_or(part)).collect()
}

/// A sample of the rows of one of some `stripes`: some from its beginning to its end.
pub fn spread<T: Copy>(rows: &[T], stripes: usize) -> Vec<T> {
    let count = (SAMPLE / stripes.max(1)).max(FEWEST);
    rows.iter().copied().step_by((rows.len() / count).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Ascents, SAMPLE, neighbours, spread};

    #[test]
    fn samples_are_small_and_from_everywhere() {
        for count in [0, 1, 5, 100, 5_000, 150_000] {
            let rows: Vec<_> = (0..count).collect();
            let near = neighbours(&rows);
            assert!(near.iter().all(|run| run.len() <= 9));
            assert!(near.len() <= SAMPLE / 4);
            for stripes in [1, 3, 64] {
                let far = spread(&rows, stripes);
                assert!(far.len() <= rows.len().min(2 * SAMPLE / stripes + 32));
                assert_eq!(far.is_empty(), rows.is_empty());
            }
        }
    }

    /// Runs of `length` rows, each column a function of the row's number.
    fn growing(runs: i64, length: i64, columns: &[fn(i64) -> Option<i64>]) -> Option<usize> {
        let mut ascents = Ascents::new(columns.len());
        for run in 0..runs {
            ascents.begin_run();
            (0..length).for_each(|at| ascents.row(|column| columns[column](run * length + at)));
        }
        ascents.growing()
    }

    #[test]
    fn the_first_that_grows_about_as_often_as_the_best() {
        assert_eq!(growing(1, 100, &[]), None);
        assert_eq!(growing(1, 100, &[|_| Some(7), |row| Some(-row), |_| None]), None);
        assert_eq!(growing(1, 100, &[|row| Some(-row), Some]), Some(1));
        // One in eight may not ascend.
        assert_eq!(growing(1, 161, &[|row| Some(row % 9)]), Some(0));
        assert_eq!(growing(1, 161, &[|row| Some(row % 7)]), None);
        // The second is a little better, or much.
        assert_eq!(growing(1, 161, &[|row| Some(row % 50), Some]), Some(0));
        assert_eq!(growing(1, 161, &[|row| Some(row % 9), Some]), Some(1));
        // NULLs ascend to nothing.
        assert_eq!(growing(1, 161, &[|row| (row % 4 > 0).then_some(row)]), None);
    }

    #[test]
    fn rows_of_different_runs_are_no_pair() {
        assert_eq!(growing(1, 16, &[Some]), None);
        assert_eq!(growing(1, 17, &[Some]), Some(0));
        assert_eq!(growing(100, 1, &[Some]), None);
        assert_eq!(growing(8, 3, &[|row| Some(row % 3 - row / 3 * 10)]), Some(0));
    }
}
