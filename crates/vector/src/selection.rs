//! Which rows of a chunk or batch are still wanted: all, or an ascending list of positions.

use crate::Bitmap;

/// Rows that survived so far, ascending and without repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Every row of `0..len`.
    All(u32),
    /// These rows.
    Rows(Vec<u32>),
}

impl Selection {
    /// Number of selected rows.
    pub fn len(&self) -> usize {
        match self {
            Self::All(len) => *len as usize,
            Self::Rows(rows) => rows.len(),
        }
    }

    /// True when no row is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps the selected rows for which `keep` returns true. It has no branch for each row, because which
    /// rows stay follows no pattern.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let mut compact = |rows: &mut Vec<u32>| {
            let mut kept = 0;
            for at in 0..rows.len() {
                let row = rows[at];
                rows[kept] = row;
                kept += usize::from(keep(row));
            }
            rows.truncate(kept);
        };
        match self {
            Self::All(len) => {
                let mut rows = (0..*len).collect();
                compact(&mut rows);
                if rows.len() != *len as usize {
                    *self = Self::Rows(rows);
                }
            }
            Self::Rows(rows) => compact(rows),
        }
    }

    /// Keeps the selected rows whose bit in `mask` is one.
    pub fn retain_mask(&mut self, mask: &Bitmap) {
        match self {
            Self::All(len) if *len as usize == mask.len() => {
                if mask.count_ones() != mask.len() {
                    *self = Self::Rows(mask.positions());
                }
            }
            _ => self.retain(|row| mask.get(row as usize)),
        }
    }

    /// Takes rows out: `out` has them ascending and without repeats.
    pub fn remove(&mut self, out: &[u32]) {
        match self {
            Self::All(len) => {
                let mut rows = Vec::with_capacity((*len as usize).saturating_sub(out.len()));
                let mut from = 0;
                for &row in out.iter().take_while(|&&row| row < *len) {
                    rows.extend(from..row);
                    from = row + 1;
                }
                if from > 0 {
                    rows.extend(from..*len);
                    *self = Self::Rows(rows);
                }
            }
            Self::Rows(rows) => {
                let mut left = out.iter().copied().peekable();
                rows.retain(|&row| {
                    while left.next_if(|&out| out < row).is_some() {}
                    left.peek() != Some(&row)
                });
            }
        }
    }

    /// Selected rows, ascending.
    pub fn iter(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::All(len) => Box::new(0..*len),
            Self::Rows(rows) => Box::new(rows.iter().copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Selection;

    #[test]
    fn rows_are_taken_out() {
        let after = |mut selection: Selection, out: &[u32]| {
            selection.remove(out);
            selection
        };
        let rows = |rows: &[u32]| Selection::Rows(rows.to_vec());
        assert_eq!(after(Selection::All(4), &[]), Selection::All(4));
        assert_eq!(after(Selection::All(4), &[4, 9]), Selection::All(4));
        assert_eq!(after(Selection::All(4), &[0, 1, 3]), rows(&[2]));
        assert_eq!(after(Selection::All(4), &[0, 1, 2, 3, 4]), rows(&[]));
        assert_eq!(after(rows(&[1, 4, 6, 9]), &[0, 4, 5, 9, 12]), rows(&[1, 6]));
        assert_eq!(after(rows(&[1, 4]), &[]), rows(&[1, 4]));
        assert_eq!(after(rows(&[7]), &[1, 2, 3]), rows(&[7]));
    }
}
