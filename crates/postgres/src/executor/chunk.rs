//! One chunk through the three steps: prune, filter, project.
//!
//! Called by `cold` for each chunk in turn. The chunk's statistics come first (all clauses with a predicate), then native filtering on encoded data, one clause after the other
//! until no row is left, then the wanted columns, decoded whole or only the surviving rows. What the stripe cannot answer natively (a column it is too old to have or that
//! has changed its type since, decimals in the side lane) is left to be checked row by row, in this chunk only. Invariant: memory is bounded by one chunk a column.

use pgrx::pg_sys::{Datum, Relation};
use stripe::{OwnedChunk, Prune, prune_chunk};
use vector::{Error, Predicate, Result, Selection, Values, Vector};

use super::begin::{Column, Counters};
use super::clauses::Clause;
use crate::convert::missing_value;
use crate::storage::codecs::ServerCodecs;
use crate::storage::directory::StripeEntry;
use crate::storage::open_stripe::{OpenStripe, Pages};

/// Where the values of a wanted column come from, for the loaded chunk.
pub enum Source {
    /// Not wanted in this chunk.
    Unwanted,
    /// Every row of the chunk.
    Whole(Vector),
    /// The selected rows only.
    Taken(Vector),
    /// The stripe is older than the column: one value for every row.
    Missing(Datum, bool),
}

/// A chunk whose rows are being handed out.
pub struct Loaded {
    /// Row number of the chunk's first row.
    pub base: u64,
    /// Rows that passed.
    pub selection: Selection,
    /// One for each of `Scan::columns`.
    pub sources: Vec<Source>,
    /// Native clauses that have to be checked row by row here.
    pub checks: Vec<usize>,
    /// Selected rows handed out so far.
    pub done: usize,
}

/// One column chunk of the chunk being loaded.
#[derive(Default)]
struct Part {
    read: Option<OwnedChunk>,
    decoded: Option<Vector>,
}

/// Reading one chunk.
struct Loader<'a> {
    open: &'a OpenStripe,
    pages: Pages,
    chunk: u32,
    columns: &'a [Column],
    /// One for each of `columns`.
    parts: Vec<Part>,
    counters: &'a mut Counters,
}

/// Takes a chunk through prune, filter and project. None when no row is left.
pub unsafe fn load(
    rel: Relation,
    entry: &StripeEntry,
    open: &OpenStripe,
    chunk: u32,
    columns: &[Column],
    clauses: &[Clause],
    counters: &mut Counters,
) -> Result<Option<Loaded>> {
    // SAFETY: rel is open.
    let pages = unsafe { Pages::new(rel, entry, std::ptr::null_mut()) };
    let mut to_filter = Vec::new();
    for (at, clause) in clauses.iter().enumerate() {
        match prune_chunk(&open.reader, chunk, &clause.predicate, &pages)? {
            Prune::NoRow => {
                counters.chunks_pruned += 1;
                return Ok(None);
            }
            Prune::SomeRows => to_filter.push(at),
            Prune::AllRows => {}
        }
    }
    counters.chunks_read += 1;
    let rows = open.reader.chunk_rows(chunk);
    let mut checks: Vec<usize> =
        (0..clauses.len()).filter(|&at| clauses.get(at).is_some_and(Clause::needs_check)).collect();
    let mut loader = Loader {
        open,
        pages,
        chunk,
        columns,
        parts: columns.iter().map(|_| Part::default()).collect(),
        counters,
    };
    let mut selection = Selection::All(rows.end - rows.start);
    for at in to_filter {
        let Some(clause) = clauses.get(at) else { continue };
        let before = selection.len();
        let filtered = match clause.predicate {
            Predicate::Always(true) => true,
            _ if !loader.understands(clause) => false,
            _ => match loader.filter(&clause.predicate, &mut selection) {
                Ok(()) => true,
                Err(Error::Unsupported(_)) => false,
                Err(problem) => return Err(problem),
            },
        };
        if !filtered && clause.native && !checks.contains(&at) {
            checks.push(at);
        }
        loader.counters.rows_filtered += (before - selection.len()) as u64;
        if selection.is_empty() {
            return Ok(None);
        }
    }
    checks.sort_unstable();
    let mut sources = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let wanted = column.in_rows
            || column.in_checks
            || checks
                .iter()
                .filter_map(|&at| clauses.get(at))
                .any(|clause| clause.reads.contains(&column.index));
        sources.push(match wanted {
            // SAFETY: rel is open.
            true => unsafe { loader.project(at, rel, &selection)? },
            false => Source::Unwanted,
        });
    }
    let base = entry.first_row + u64::from(rows.start);
    Ok(Some(Loaded { base, selection, sources, checks, done: 0 }))
}

impl Loader<'_> {
    /// Whether the stripe has the clause's columns, with the types that its predicate is about.
    fn understands(&self, clause: &Clause) -> bool {
        clause.columns.iter().all(|&index| {
            self.columns.iter().any(|column| {
                column.index == index && self.open.reader.logical(index) == Some(column.logical)
            })
        })
    }

    fn part(&mut self, at: usize) -> Result<&mut Part> {
        let (Some(column), Some(part)) = (self.columns.get(at), self.parts.get_mut(at)) else {
            return Err(Error::InvalidInput("column of a predicate is not wanted".into()));
        };
        if part.read.is_none() && part.decoded.is_none() {
            let read = self.open.reader.read_chunk(column.index, self.chunk, &self.pages, &ServerCodecs)?;
            self.counters.bytes_read += read.len() as u64;
            part.read = Some(read);
        }
        Ok(part)
    }

    /// Keeps the rows for which the predicate is TRUE. On error the selection is unspecified but not larger than it was, and holds all
    /// rows that qualify.
    fn filter(&mut self, predicate: &Predicate, selection: &mut Selection) -> Result<()> {
        let columns = predicate.columns();
        match (predicate, columns.as_slice()) {
            (Predicate::Always(true), _) => Ok(()),
            (Predicate::Always(false), _) => {
                selection.retain(|_| false);
                Ok(())
            }
            (_, &[index]) => {
                let Some(at) = self.columns.iter().position(|column| column.index == index) else {
                    return Err(Error::InvalidInput("column of a predicate is not wanted".into()));
                };
                self.filter_column(at, predicate, selection)
            }
            (Predicate::And(parts), _) => parts.iter().try_for_each(|part| match selection.is_empty() {
                true => Ok(()),
                false => self.filter(part, selection),
            }),
            (Predicate::Or(parts), _) => {
                let mut rest = selection.clone();
                let mut passed: Vec<u32> = Vec::new();
                for part in parts {
                    let mut here = rest.clone();
                    self.filter(part, &mut here)?;
                    let kept: Vec<u32> = here.iter().collect();
                    let mut at = 0;
                    // Rows that passed one part need not be asked about the next.
                    rest.retain(|row| {
                        while kept.get(at).is_some_and(|&k| k < row) {
                            at += 1;
                        }
                        kept.get(at) != Some(&row)
                    });
                    passed.extend(kept);
                    if rest.is_empty() {
                        break;
                    }
                }
                passed.sort_unstable();
                let mut at = 0;
                selection.retain(|row| {
                    while passed.get(at).is_some_and(|&k| k < row) {
                        at += 1;
                    }
                    passed.get(at) == Some(&row)
                });
                Ok(())
            }
            _ => Err(Error::Unsupported("predicate of this shape".into())),
        }
    }

    fn filter_column(&mut self, at: usize, predicate: &Predicate, selection: &mut Selection) -> Result<()> {
        let part = self.part(at)?;
        if let Some(vector) = &part.decoded {
            return encodings::filter_vector(vector, predicate, selection);
        }
        let Some(read) = &part.read else { return Ok(()) };
        if read.filter(predicate, selection, &ServerCodecs)? {
            return Ok(());
        }
        let vector = read.decode(&ServerCodecs)?;
        let size = vector_bytes(&vector);
        let filtered = encodings::filter_vector(&vector, predicate, selection);
        part.decoded = Some(vector);
        self.counters.bytes_decoded += size;
        filtered
    }

    /// The values of a wanted column for the selected rows.
    unsafe fn project(&mut self, at: usize, rel: Relation, selection: &Selection) -> Result<Source> {
        let Some(column) = self.columns.get(at) else { return Ok(Source::Unwanted) };
        if column.index >= self.open.reader.column_count() {
            // SAFETY: the row type lives as long as the open relation.
            let (value, null) = unsafe { missing_value((*rel).rd_att, column.index) };
            return Ok(Source::Missing(value, null));
        }
        let part = self.part(at)?;
        if let Some(vector) = part.decoded.take() {
            return Ok(Source::Whole(vector));
        }
        let Some(read) = &part.read else { return Ok(Source::Unwanted) };
        let source = match selection {
            Selection::Rows(rows) if rows.len() * TAKE_BELOW < read.rows() as usize => {
                Source::Taken(read.take(rows, &ServerCodecs)?)
            }
            _ => Source::Whole(read.decode(&ServerCodecs)?),
        };
        if let Source::Whole(vector) | Source::Taken(vector) = &source {
            self.counters.bytes_decoded += vector_bytes(vector);
        }
        Ok(source)
    }
}

/// Rows are taken one by one when fewer than one in this many survived.
const TAKE_BELOW: usize = 4;

/// About how many bytes the values of a vector take.
fn vector_bytes(vector: &Vector) -> u64 {
    let bytes = match &vector.values {
        Values::Bool(bits) => bits.len() / 8,
        Values::Int16(values) => values.len() * 2,
        Values::Int32(values) => values.len() * 4,
        Values::Int64(values) => values.len() * 8,
        Values::Float32(values) => values.len() * 4,
        Values::Float64(values) => values.len() * 8,
        Values::Fixed(values) => values.bytes.len(),
        Values::Bytes(values) => values.len() * 16 + values.total_bytes(),
        Values::Numeric(values) => {
            values.len()
                * match &values.ints {
                    vector::NumericInts::Int32(_) => 4,
                    vector::NumericInts::Int64(_) => 8,
                    vector::NumericInts::Int128(_) => 16,
                }
        }
        Values::Constant(..) => 16,
        Values::Dictionary { codes, .. } => codes.len() * 4,
        Values::Runs { ends, values } => ends.len() * 4 + usize::try_from(vector_bytes(values)).unwrap_or(0),
    };
    bytes as u64
}
