//! One row of shredded documents, put together without vectors.
//!
//! Called for rows that are looked up one by one. Each path column that the row takes a value of is opened,
//! and gives it as a `Single`.

use vector::{Error, LogicalType, Result, Vector};

use super::fill::{Source, append_number, fill_one, room_around};
use super::program::{FLAG_UNIT, PathKind, Program};
use crate::kernels::append::Appender;
use crate::registry::OpenNode;
use crate::single::Single;

/// A path column, opened.
pub struct OpenPath<'n> {
    /// What it holds.
    pub kind: PathKind,
    /// Its child columns: one, or numbers and their scales.
    pub nodes: Vec<OpenNode<'n>>,
    /// How many values it has.
    pub rows: usize,
    /// The next value that the row takes.
    pub next: usize,
}

/// The paths of a row, and what its values need.
struct Paths<'n> {
    /// By number; those that the row takes no value of are not opened.
    paths: Vec<Option<OpenPath<'n>>>,
    room: Vec<u8>,
    /// Room that the row needs besides its values.
    around: usize,
    /// The most bytes that the row may have.
    limit: usize,
    problem: Option<Error>,
}

/// Puts the row together in `out`, in place of what is there. `limit` are the bytes of all rows.
pub fn build(
    program: &Program,
    paths: Vec<Option<OpenPath<'_>>>,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    let mut row = Appender::over(std::mem::take(out));
    let around = room_around(program);
    row.reserve(around);
    let mut paths = Paths { paths, room: Vec::new(), around, limit, problem: None };
    let built = fill_one(program, &mut paths, &mut row);
    *out = row.finish();
    built.ok_or_else(|| {
        paths.problem.unwrap_or_else(|| Error::corrupt("template row does not fit its values"))
    })
}

impl Source for Paths<'_> {
    fn append(&mut self, path: u32, out: &mut Appender) -> Option<u32> {
        let path = self.paths.get_mut(path as usize)?.as_mut()?;
        // One value may be taken again and again.
        if out.at() > self.limit {
            return None;
        }
        match path.append(&mut self.room, self.around, out) {
            Ok(add) => Some(add),
            Err(problem) => {
                self.problem = Some(problem);
                None
            }
        }
    }
}

impl OpenPath<'_> {
    fn append(&mut self, room: &mut Vec<u8>, around: usize, out: &mut Appender) -> Result<u32> {
        let at = self.next;
        self.next += 1;
        match self.kind {
            PathKind::Text | PathKind::Aligned => self.value(0, LogicalType::Text, at, room, |value| {
                let bytes = value.bytes()?;
                out.reserve(bytes.len() + around);
                out.bytes(bytes)?;
                Some(0)
            }),
            PathKind::Number => {
                let number = self.value(0, LogicalType::Int64, at, room, |value| value.int())?;
                self.value(1, LogicalType::Int16, at, room, |scale| {
                    out.reserve(around);
                    append_number(number, i16::try_from(scale.int()?).ok()?, out)?;
                    Some(0)
                })
            }
            PathKind::Flag => self
                .value(0, LogicalType::Bool, at, room, |value| Some(FLAG_UNIT * u32::from(value.truth()?))),
        }
    }

    /// What `read` makes of a value of a child column. `Corrupt` if it makes nothing of it.
    fn value<T>(
        &self,
        child: usize,
        logical: LogicalType,
        at: usize,
        room: &mut Vec<u8>,
        read: impl FnOnce(Single<'_>) -> Option<T>,
    ) -> Result<T> {
        let wrong = || Error::corrupt(format!("value {at} of a path with {}", self.rows));
        let node = self.nodes.get(child).filter(|_| at < self.rows).ok_or_else(wrong)?;
        if let Some(value) = node.single(at, room)? {
            return read(value).ok_or_else(wrong);
        }
        let place = u32::try_from(at).map_err(|_| wrong())?;
        let taken = Vector::new(logical, node.take(&[place])?).flatten();
        if taken.len() != 1 {
            return Err(wrong());
        }
        read(Single::Of(&taken, 0)).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::program::Step;
    use super::*;
    use crate::cursor::Reader;
    use crate::encoding::NodeContext;
    use crate::options::{EncodingId, NoPglz};
    use crate::registry::open_values;
    use crate::shared::SharedColumn;

    #[test]
    fn a_row_is_no_longer_than_all_rows() {
        const ROWS: usize = 9;
        // One text of 5 bytes for all rows: the constant's tag, then a plain node of one length and the text.
        let bytes = [
            &[EncodingId::Constant.tag(), EncodingId::Plain.tag(), 2, EncodingId::Constant.tag(), 10][..],
            b"hello",
        ]
        .concat();
        let shared = SharedColumn::none(LogicalType::Text);
        let context = NodeContext {
            logical: LogicalType::Text,
            rows: ROWS,
            shared: &shared,
            codecs: &NoPglz,
            depth: 4,
        };
        let row = |limit: usize, out: &mut Vec<u8>| {
            let node = open_values(&mut Reader::new(&bytes), &context).unwrap();
            let path = OpenPath { kind: PathKind::Text, nodes: vec![node], rows: ROWS, next: 0 };
            let program = Program { steps: vec![Step::Whole { path: 0 }; ROWS], literals: Vec::new() };
            build(&program, vec![Some(path)], limit, out)
        };
        let mut out = b"what was there".to_vec();
        row(5 * ROWS, &mut out).unwrap();
        assert_eq!(out, b"hello".repeat(ROWS));
        assert!(matches!(row(5 * ROWS / 2, &mut out), Err(Error::Corrupt { .. })));
    }
}
