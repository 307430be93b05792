//! Answers questions about documents, chunk by chunk. If documents are shredded, the values of a path give
//! the answers, instead of the documents around them.
//!
//! Called by hosts for each chunk of a column if a query only asks questions of the column. A row that has a
//! value at a path of keys has just that value there, so the path answers for it. The documents of other rows
//! are decoded and asked as usual. In these rows
//! - the key is missing or NULL,
//! - it holds a container or a number that was not shredded,
//! - or the document was kept whole.
//!
//! Invariant: the answer of a row does not depend on how its chunk is encoded.

use encodings::{BlockCodecs, Chunk, Path, PathColumn, PathComponent, PathKind, Validity};
use server_bytes::Question;
use server_bytes::jsonb::{self, Leaf};
use server_bytes::numeric;
use vector::{Bitmap, LogicalType, Result, Selection, Values, Vector, VectorBuilder, concat_coded};

use crate::OwnedChunk;

/// If fewer than one row in this many is wanted, the rows are asked one by one.
const ASK_BELOW: usize = 4;

/// Whether shredded documents can answer a question.
pub const fn has_paths(question: &Question) -> bool {
    matches!(question, Question::FieldText(_) | Question::Contains(_) | Question::Exists(_))
}

/// The answers for the selected rows of a chunk of documents.
pub fn answers(
    question: &Question,
    chunk: &OwnedChunk,
    selection: &Selection,
    codecs: &dyn BlockCodecs,
) -> Result<Vector> {
    match selection {
        Selection::Rows(rows) if rows.len() * ASK_BELOW < chunk.rows() as usize => {
            Asked { question, owned: chunk, codecs }.of_rows(rows)
        }
        _ => {
            let answers = |piece: OwnedChunk| {
                let asked = Asked { question, owned: &piece, codecs };
                match asked.of_paths()? {
                    Some(answers) => Ok(answers),
                    None => asked.of_vector(piece.decode(codecs)?),
                }
            };
            let parts = chunk.pieces().map(answers).collect::<Result<Vec<_>>>()?;
            let logical = parts.first().map_or(LogicalType::Bool, |part| part.logical);
            let answers = concat_coded(logical, parts)?;
            Ok(match selection {
                Selection::All(_) => answers,
                Selection::Rows(rows) => answers.take(rows),
            })
        }
    }
}

/// What is known of a row so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Unknown,
    True,
    False,
}

/// A question that is asked of one chunk.
struct Asked<'a> {
    question: &'a Question,
    owned: &'a OwnedChunk,
    codecs: &'a dyn BlockCodecs,
}

impl Asked<'_> {
    /// The answers for these documents.
    fn of_vector(&self, documents: Vector) -> Result<Vector> {
        let rows = documents.len();
        self.question.answers(Some(&documents.flatten()), rows)
    }

    /// The answers for these rows, from their documents.
    fn of_rows(&self, rows: &[u32]) -> Result<Vector> {
        self.of_vector(self.owned.take(rows, self.codecs)?)
    }

    /// The answers for all rows of a chunk. None if the chunk is not shredded, or if the question is not
    /// about a path.
    fn of_paths(&self) -> Result<Option<Vector>> {
        let leaves = match self.question {
            Question::Contains(other) => match jsonb::leaves(other)? {
                Some(leaves) => leaves,
                None => return Ok(None),
            },
            Question::FieldText(_) | Question::Exists(_) => Vec::new(),
            _ => return Ok(None),
        };
        let paths = self.owned.paths(self.codecs)?;
        if paths.is_empty() {
            return Ok(None);
        }
        let chunk = self.owned.open(self.codecs)?;
        match self.question {
            Question::FieldText(key) => self.texts(&chunk, &paths, key),
            Question::Exists(key) => {
                let mut known = vec![Known::Unknown; chunk.rows()];
                let starts = |path: &Path| matches!(path.components.first(), Some(PathComponent::Key(first)) if first == key);
                for (number, _) in paths.iter().enumerate().filter(|(_, path)| starts(path)) {
                    let Some(column) = chunk.path(number)? else { return Ok(None) };
                    set(&mut known, &column, &mut |_| Known::True);
                    if known.iter().all(|&row| row == Known::True) {
                        break;
                    }
                }
                self.truths(&chunk, &known).map(Some)
            }
            Question::Contains(_) => {
                let mut all = vec![Known::True; chunk.rows()];
                for (keys, leaf) in &leaves {
                    let mut known = vec![Known::Unknown; chunk.rows()];
                    for (number, path) in paths.iter().enumerate().filter(|(_, path)| is_path(path, keys)) {
                        let Some(column) = chunk.path(number)? else { return Ok(None) };
                        compare(&mut known, &column, path.kind, leaf);
                    }
                    for (all, known) in all.iter_mut().zip(known) {
                        *all = match (*all, known) {
                            (Known::False, _) | (_, Known::False) => Known::False,
                            (Known::True, Known::True) => Known::True,
                            _ => Known::Unknown,
                        };
                    }
                }
                self.truths(&chunk, &all).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The truth values. Those that are not known yet are found in the documents.
    fn truths(&self, chunk: &Chunk<'_>, known: &[Known]) -> Result<Vector> {
        let mut bits: Bitmap = known.iter().map(|&row| row == Known::True).collect();
        let validity = validity(chunk);
        let rest = rest(known.iter().map(|&row| row == Known::Unknown), validity.as_ref());
        if !rest.is_empty() {
            let asked = self.of_rows(&rest)?;
            if let Values::Bool(answers) = &asked.values {
                rest.iter().zip(answers.iter()).for_each(|(&row, answer)| bits.set(row as usize, answer));
            }
        }
        Ok(Vector { logical: LogicalType::Bool, validity, values: Values::Bool(bits) })
    }

    /// The texts of a key. None if the chunk is not shredded.
    fn texts(&self, chunk: &Chunk<'_>, paths: &[Path], key: &[u8]) -> Result<Option<Vector>> {
        let keys = [key.to_vec()];
        let rows = chunk.rows();
        let validity = validity(chunk);
        let mut found: Vec<Option<Vec<u8>>> = Vec::new();
        for (number, path) in paths.iter().enumerate().filter(|(_, path)| is_path(path, &keys)) {
            let Some(column) = chunk.path(number)? else { return Ok(None) };
            if path.kind == PathKind::Text && column.rows.len() == rows {
                // The usual case: every document has the key. The encoding of its values stays as it is.
                if let Some(mut texts) = column.columns.into_iter().next() {
                    texts.logical = LogicalType::Text;
                    texts.validity = validity;
                    return Ok(Some(texts));
                }
                continue;
            }
            found.resize(rows, None);
            write_texts(&mut found, column, path.kind);
        }
        found.resize(rows, None);
        let rest = rest(found.iter().map(Option::is_none), validity.as_ref());
        let asked = match rest.is_empty() {
            true => None,
            false => Some(self.of_rows(&rest)?),
        };
        let mut builder = VectorBuilder::new(LogicalType::Text);
        let mut next = 0;
        for (row, text) in found.iter().enumerate() {
            let valid = validity.as_ref().is_none_or(|validity| validity.get(row));
            match (text, &asked) {
                _ if !valid => builder.push_null(),
                (Some(text), _) => _ = builder.push_bytes(text),
                (None, Some(asked)) => {
                    match &asked.values {
                        Values::Bytes(texts) if asked.is_valid(next) => {
                            _ = builder.push_bytes(texts.get(next))
                        }
                        _ => builder.push_null(),
                    }
                    next += 1;
                }
                (None, None) => builder.push_null(),
            }
        }
        Ok(Some(builder.finish(&|_, _, _| Box::default())))
    }
}

/// Whether a path is just these keys.
fn is_path(path: &Path, keys: &[Vec<u8>]) -> bool {
    let same = |(component, key): (&PathComponent, &Vec<u8>)| matches!(component, PathComponent::Key(name) if name == key);
    path.components.len() == keys.len() && path.components.iter().zip(keys).all(same)
}

fn validity(chunk: &Chunk<'_>) -> Option<Bitmap> {
    match chunk.validity() {
        Validity::AllValid => None,
        Validity::AllNull => Some(Bitmap::filled(chunk.rows(), false)),
        Validity::Some(bits) => Some(bits.clone()),
    }
}

/// The rows that are not NULL and about which nothing is known.
fn rest(unknown: impl Iterator<Item = bool>, validity: Option<&Bitmap>) -> Vec<u32> {
    let wanted =
        |&(row, unknown): &(u32, bool)| unknown && validity.is_none_or(|bits| bits.get(row as usize));
    (0u32..).zip(unknown).filter(wanted).map(|(row, _)| row).collect()
}

/// Notes a verdict for each row that has a value.
fn set(known: &mut [Known], column: &PathColumn, verdict: &mut dyn FnMut(usize) -> Known) {
    for (at, &row) in column.rows.iter().enumerate() {
        if let Some(known) = known.get_mut(row as usize) {
            *known = verdict(at);
        }
    }
}

/// Notes for each row that has a value whether it is the wanted one.
fn compare(known: &mut [Known], column: &PathColumn, kind: PathKind, leaf: &Leaf) {
    let truth = |truth: bool| if truth { Known::True } else { Known::False };
    let first = column.columns.first();
    match (kind, leaf, first.map(|first| &first.values)) {
        (PathKind::Text, Leaf::Text(text), Some(values)) => match values {
            Values::Bytes(found) => set(known, column, &mut |at| truth(found.get(at) == text.as_slice())),
            Values::Constant(one, _) => {
                let same =
                    truth(matches!(&one.values, Values::Bytes(found) if found.get(0) == text.as_slice()));
                set(known, column, &mut |_| same);
            }
            Values::Dictionary { codes, dictionary } => {
                let entries: Vec<Known> = match &dictionary.entries.values {
                    Values::Bytes(found) => {
                        found.iter().map(|entry| truth(entry == text.as_slice())).collect()
                    }
                    _ => return,
                };
                let verdict = |at: usize| codes.get(at).and_then(|&code| entries.get(code as usize)).copied();
                set(known, column, &mut |at| verdict(at).unwrap_or(Known::Unknown));
            }
            _ => {
                let Some(Values::Bytes(found)) = first.map(|first| first.clone().flatten().values) else {
                    return;
                };
                set(known, column, &mut |at| truth(found.get(at) == text.as_slice()));
            }
        },
        (PathKind::Text, _, _) => set(known, column, &mut |_| Known::False),
        (PathKind::Flag, Leaf::Bool(wanted), Some(values)) => {
            let flat = Vector::new(LogicalType::Bool, values.clone()).flatten();
            if let Values::Bool(found) = &flat.values {
                set(known, column, &mut |at| truth(found.get(at) == *wanted));
            }
        }
        (PathKind::Flag, _, _) => set(known, column, &mut |_| Known::False),
        (PathKind::Number, Leaf::Text(_) | Leaf::Bool(_), _) => set(known, column, &mut |_| Known::False),
        // Numbers that are compared with numbers are rare. The documents answer for them.
        (PathKind::Number, Leaf::Number, _) | (PathKind::Aligned, _, _) => {}
    }
}

/// Writes the texts of the rows that have a value.
fn write_texts(found: &mut [Option<Vec<u8>>], column: PathColumn, kind: PathKind) {
    let mut flat = column.columns.into_iter().map(|vector| vector.flatten().values);
    let (first, second) = (flat.next(), flat.next());
    for (at, &row) in column.rows.iter().enumerate() {
        let Some(place) = found.get_mut(row as usize) else { continue };
        *place = match (kind, &first, &second) {
            (PathKind::Text, Some(Values::Bytes(texts)), _) => Some(texts.get(at).to_vec()),
            (PathKind::Flag, Some(Values::Bool(flags)), _) => {
                Some(if flags.get(at) { b"true".to_vec() } else { b"false".to_vec() })
            }
            (PathKind::Number, Some(Values::Int64(numbers)), Some(Values::Int16(scales))) => {
                numbers.get(at).zip(scales.get(at)).and_then(|(&number, &scale)| decimal_text(number, scale))
            }
            _ => None,
        };
    }
}

fn decimal_text(number: i64, scale: i16) -> Option<Vec<u8>> {
    let scale = u16::try_from(scale).ok()?;
    let mut out = Vec::new();
    numeric::write_text(&numeric::to_side(i128::from(number), scale, scale), &mut out).ok()?;
    Some(out)
}
