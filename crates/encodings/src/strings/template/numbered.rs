//! What follows from the template numbers of a chunk: how many values each path has, and where those of a row
//! lie.
//!
//! Called by the template node. The number of values in a path column is not stored: it is counted.

use super::program::Program;
use super::stored::Templates;

/// How many rows lie between two marks.
const MARK: usize = 256;
/// With more templates there are no marks.
const MARKED_TEMPLATES: usize = 64;

/// The facts that follow from all template numbers.
pub struct Numbered {
    /// By row.
    pub numbers: Vec<u32>,
    /// Values each path has.
    pub counts: Vec<usize>,
    /// How many templates there are.
    templates: usize,
    /// Rows of each template before every `MARK`th row, one row's after the other's.
    marks: Vec<u32>,
}

impl Numbered {
    /// Counts.
    pub fn of(shared: &Templates, numbers: Vec<u32>) -> Self {
        let templates = shared.programs.len();
        let mut marks = Vec::new();
        if templates <= MARKED_TEMPLATES {
            let mut rows = vec![0u32; templates];
            for some in numbers.chunks(MARK) {
                marks.extend_from_slice(&rows);
                count(some, &mut rows);
            }
        }
        Self { counts: counts(shared, &numbers), numbers, templates, marks }
    }

    /// A row at or before this one, and how many rows of each template come before it.
    fn mark_before(&self, row: usize) -> (usize, Vec<u32>) {
        let mark = row / MARK;
        match self.marks.get(mark * self.templates..(mark + 1) * self.templates) {
            Some(rows) => (mark * MARK, rows.to_vec()),
            None => (0, vec![0; self.templates]),
        }
    }
}

/// Values each path has in this chunk.
pub fn counts(shared: &Templates, numbers: &[u32]) -> Vec<usize> {
    let mut rows = vec![0u32; shared.programs.len()];
    count(numbers, &mut rows);
    values_of(shared, &rows)
}

/// Adds the rows of each template.
fn count(numbers: &[u32], rows: &mut [u32]) {
    for &number in numbers {
        if let Some(rows) = rows.get_mut(number as usize) {
            *rows += 1;
        }
    }
}

/// How many values of each path so many rows of each template take.
fn values_of(shared: &Templates, rows: &[u32]) -> Vec<usize> {
    let mut values = vec![0usize; shared.paths.len()];
    for (program, &rows) in shared.programs.iter().zip(rows).filter(|(_, rows)| **rows > 0) {
        for path in program.paths() {
            if let Some(values) = values.get_mut(path as usize) {
                *values += rows as usize;
            }
        }
    }
    values
}

/// How many values of each path a row of this template takes.
pub fn uses_of(shared: &Templates, program: &Program) -> Vec<u32> {
    let mut uses = vec![0u32; shared.paths.len()];
    for path in program.paths() {
        if let Some(uses) = uses.get_mut(path as usize) {
            *uses += 1;
        }
    }
    uses
}

/// How many values of each path the rows before this one take.
pub fn values_before(shared: &Templates, known: &Numbered, row: usize) -> Vec<usize> {
    let (mark, mut rows) = known.mark_before(row);
    count(known.numbers.get(mark..row).unwrap_or(&[]), &mut rows);
    values_of(shared, &rows)
}

/// For each path the places of the values that these rows (ascending, each once) take.
pub fn places(shared: &Templates, known: &Numbered, rows: &[u32]) -> Vec<Vec<u32>> {
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); shared.paths.len()];
    let mut next = rows.first().map_or(0, |&row| row as usize);
    let mut cursors = values_before(shared, known, next);
    // Rows skipped since the last one taken, by template: a template's paths are moved on once for all of
    // them.
    let (mut skipped, mut touched) = (vec![0u32; known.templates], Vec::<u32>::new());
    for &row in rows {
        let row = row as usize;
        for &number in known.numbers.get(next..row).unwrap_or(&[]) {
            if let Some(count) = skipped.get_mut(number as usize) {
                if *count == 0 {
                    touched.push(number);
                }
                *count += 1;
            }
        }
        for number in touched.drain(..) {
            let number = number as usize;
            let count = skipped.get_mut(number).map_or(0, std::mem::take);
            for path in shared.programs.get(number).into_iter().flat_map(|program| program.paths()) {
                if let Some(cursor) = cursors.get_mut(path as usize) {
                    *cursor += count as usize;
                }
            }
        }
        let number = known.numbers.get(row).copied().unwrap_or(0) as usize;
        for path in shared.programs.get(number).into_iter().flat_map(|program| program.paths()) {
            if let (Some(cursor), Some(places)) =
                (cursors.get_mut(path as usize), places.get_mut(path as usize))
            {
                places.push(u32::try_from(*cursor).unwrap_or(u32::MAX));
                *cursor += 1;
            }
        }
        next = row + 1;
    }
    places
}
