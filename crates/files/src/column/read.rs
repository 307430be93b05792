//! A column file that is open.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use encodings::{Codec, NoPglz};
use stripe::{StripeBytes, StripeReader, verify_chunk, verify_column};
use vector::{LogicalType, Vector, VectorBuilder};

use super::default;
use super::footer::{Column, Footer, SegmentPlace};
use super::head::{self, HEAD_BYTES, Owner, Place};
use super::segment::{self, StripePlace};
use super::{Ranges, within};
use crate::{About, Error, Result, same};

/// A column file, as it was when it was opened. Loads that come later do not change what it reads.
#[derive(Debug)]
pub struct ColumnFile<R> {
    source: R,
    place: Place,
    damaged_place: Option<u64>,
    owner: Option<Owner>,
    footer: Footer,
    /// What rows have that are older than a column, in the columns' order. None: NULL.
    defaults: Vec<Option<Arc<Vector>>>,
    stripes: Vec<StripePlace>,
}

impl<R: Ranges> ColumnFile<R> {
    /// Opens a file: its head, its footer and what is known of its stripes are read.
    ///
    /// # Errors
    /// `Malformed` where this is no column file, or a damaged one; `Unsupported` for one of a newer version;
    /// `Io` where it cannot be read.
    pub fn open(source: R) -> Result<Self> {
        let (mut head, length) = (Vec::new(), source.length()?);
        source.read(0..HEAD_BYTES.min(length), &mut head)?;
        let place = head::read(&head)?;
        if place.end > length || place.footer().end > place.end {
            return Err(Error::Malformed(format!("it has {length} bytes and should have {}", place.end)));
        }
        let mut bytes = Vec::new();
        source.read(place.footer(), &mut bytes)?;
        let footer = Footer::read(&bytes, place.end)?;
        let mut stripes = Vec::new();
        for each in &footer.segments {
            bytes.clear();
            source.read(each.bytes.clone(), &mut bytes)?;
            let found = segment::read(&bytes, place.end)?;
            if found.iter().map(|stripe| u64::from(stripe.rows)).sum::<u64>() != each.rows {
                return Err(Error::Malformed("a segment has other rows than the footer says".into()));
            }
            stripes.extend(found);
        }
        let (damaged_place, owner) = (head::damaged_place(&head), Owner::read(&head)?);
        let of_number: HashMap<_, _> =
            footer.defaults.iter().map(|(number, value)| (*number, value.as_slice())).collect();
        let defaults = footer.columns.iter().map(|column| default_of(column, &of_number));
        let defaults = defaults.collect::<Result<_>>()?;
        Ok(Self { source, place, damaged_place, owner, footer, defaults, stripes })
    }

    /// The columns, in their order.
    pub fn columns(&self) -> &[Column] {
        &self.footer.columns
    }

    /// What rows have that are older than a column, in the columns' order: a vector of one row. None: NULL.
    pub fn defaults(&self) -> &[Option<Arc<Vector>>] {
        &self.defaults
    }

    /// The stripes, in the order in which they were written.
    pub fn stripes(&self) -> &[StripePlace] {
        &self.stripes
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.footer.segments.iter().map(|segment| segment.rows).sum()
    }

    /// How many loads were finished.
    pub const fn loads(&self) -> u64 {
        self.place.generation
    }

    /// How many bytes of the file count. What lies behind them was left by a load that was not finished.
    pub const fn length(&self) -> u64 {
        self.place.end
    }

    /// The first byte of the head's other place, if it is damaged. A later load than this file has may have
    /// been finished there.
    pub const fn damaged_place(&self) -> Option<u64> {
        self.damaged_place
    }

    /// The table of a server that alone loads the file, if there is one.
    pub const fn owner(&self) -> Option<Owner> {
        self.owner
    }

    pub(super) const fn place(&self) -> Place {
        self.place
    }

    pub(super) fn segments(&self) -> &Vec<SegmentPlace> {
        &self.footer.segments
    }

    pub(super) fn into_footer(self) -> Footer {
        self.footer
    }

    /// Opens a stripe by its position. None past the last one.
    ///
    /// # Errors
    /// As `open`.
    pub fn stripe(&self, at: usize) -> Result<Option<OpenStripe<'_, R>>> {
        let Some(place) = self.stripes.get(at) else { return Ok(None) };
        let bytes = BytesOfStripe { source: &self.source, range: place.bytes.clone() };
        let mut footer = Vec::new();
        let reader = bytes.read(place.footer.clone(), &mut footer).and_then(|()| StripeReader::open(&footer));
        let reader = reader.map_err(|error| damaged(place, &error))?;
        if reader.row_count() != place.rows {
            let error =
                vector::Error::corrupt(format!("{} rows where {} are named", reader.row_count(), place.rows));
            return Err(damaged(place, &error));
        }
        let (columns, defaults) = (&self.footer.columns, &self.defaults);
        Ok(Some(OpenStripe { columns, defaults, place, reader, bytes }))
    }
}

/// The value of older rows in a column.
fn default_of(column: &Column, of_number: &HashMap<u32, &[u8]>) -> Result<Option<Arc<Vector>>> {
    let Some(bytes) = of_number.get(&column.number) else { return Ok(None) };
    let broken = || Error::Malformed(format!("the default of column {} is none of its type", column.name));
    default::value(column, bytes).map(|value| Some(Arc::new(value))).ok_or_else(broken)
}

/// An error in a stripe, with its place.
fn damaged(place: &StripePlace, error: &vector::Error) -> Error {
    super::broken(&format!("stripe at byte {}", place.bytes.start), error)
}

/// A stripe that is open.
#[derive(Debug)]
pub struct OpenStripe<'a, R> {
    columns: &'a [Column],
    defaults: &'a [Option<Arc<Vector>>],
    place: &'a StripePlace,
    reader: StripeReader,
    bytes: BytesOfStripe<'a, R>,
}

/// The bytes of a stripe of a file.
#[derive(Debug)]
struct BytesOfStripe<'a, R> {
    source: &'a R,
    range: Range<u64>,
}

impl<R: Ranges> StripeBytes for BytesOfStripe<'_, R> {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> vector::Result<()> {
        let Range { start, end } = within(&self.range, &range)?;
        self.source.read(start..end, out).map_err(|error| match error {
            Error::Io(error) => vector::Error::Host(error.to_string()),
            other => vector::Error::corrupt(other.to_string()),
        })
    }
}

impl<R: Ranges> OpenStripe<'_, R> {
    /// The reader of its columns, chunks and statistics.
    pub const fn reader(&self) -> &StripeReader {
        &self.reader
    }

    /// Where its column is, of the file's column at this position. None if it is older than the column.
    ///
    /// # Errors
    /// `Malformed` where its type is another one.
    pub fn column(&self, at: usize) -> Result<Option<usize>> {
        let Some(column) = self.columns.get(at) else { return Ok(None) };
        let Some(found) = self.place.columns.iter().position(|&number| number == column.number) else {
            return Ok(None);
        };
        match self.reader.logical(found) {
            Some(logical) if logical == column.logical => Ok(Some(found)),
            other => Err(Error::Malformed(format!(
                "column {} is {:?}, and {other:?} in the stripe at byte {}",
                column.name, column.logical, self.place.bytes.start
            ))),
        }
    }

    /// What rows have that are older than the file's column at this position. None: NULL.
    fn default(&self, at: usize) -> Option<&Vector> {
        self.defaults.get(at)?.as_deref()
    }

    /// The values of one chunk, of the file's column at this position.
    ///
    /// # Errors
    /// `Malformed` for damaged bytes.
    pub fn read(&self, at: usize, chunk: u32) -> Result<Vector> {
        let Some(column) = self.column(at)? else {
            let rows = self.reader.chunk_rows(chunk).len();
            if let Some(value) = self.default(at) {
                return Ok(same::rows(value, rows).flatten());
            }
            let logical = self.columns.get(at).map_or(LogicalType::Bytes, |column| column.logical);
            return Ok(nulls(logical, rows));
        };
        let read = self.reader.read_chunk(column, chunk, &self.bytes, &NoPglz);
        let decoded = read.and_then(|chunk| chunk.decode(&NoPglz)).map(Vector::flatten);
        decoded.map_err(|error| damaged(self.place, &error))
    }

    /// What is known of the file's column at this position. All its chunks are read, and none is decoded.
    ///
    /// # Errors
    /// `Malformed` for damaged bytes.
    pub fn about(&self, at: usize) -> Result<About> {
        let Some(column) = self.column(at)? else {
            let rows = self.reader.row_count();
            return Ok(match self.default(at) {
                Some(value) => About::of(rows.into(), same::statistics(value, rows).as_ref()),
                None => About::of_older(rows.into()),
            });
        };
        self.about_stored(column).map_err(|error| damaged(self.place, &error))
    }

    fn about_stored(&self, column: usize) -> vector::Result<About> {
        let (reader, bytes) = (&self.reader, &self.bytes);
        let statistics = reader.column_statistics(column, bytes)?;
        let mut about = About::of(reader.row_count().into(), Some(statistics));
        let shared = reader.shared_range(column, bytes)?;
        about.bytes = shared.end - shared.start;
        let mut codecs = vec![reader.shared(column, bytes, &NoPglz)?.codec()];
        for chunk in 0..reader.chunk_count() {
            // A chunk has several pieces where rows lie in blocks.
            for piece in reader.read_chunk(column, chunk, bytes, &NoPglz)?.pieces() {
                let opened = piece.open(&NoPglz)?;
                about.bytes += piece.len() as u64;
                about.add_chunk(&opened.encoding());
                codecs.extend(opened.codecs().map_err(|error| piece.located(error))?);
            }
        }
        codecs.retain(|codec| *codec != Codec::None);
        codecs.iter().for_each(|codec| about.add_codec(codec.name()));
        Ok(about)
    }

    /// Holds all that the stripe says of its values against them. Returns what is wrong, in words.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn verify(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for at in 0..self.reader.column_count() {
            let number = self.place.columns.get(at);
            let column = self.columns.iter().find(|column| number == Some(&column.number));
            let name = column.map_or_else(|| (at + 1).to_string(), |column| column.name.clone());
            let name = format!("column {name}");
            let mut tell = |place: String, finding: stripe::Finding| {
                found.push(format!("stripe at byte {}, {place}: {}", self.place.bytes.start, finding.detail));
            };
            let wrong = |error| damaged(self.place, &error);
            if let Some(finding) =
                verify_column(&self.reader, at, &self.place.summary, &self.bytes).map_err(wrong)?
            {
                tell(name.clone(), finding);
                continue;
            }
            for chunk in 0..self.reader.chunk_count() {
                let finding = verify_chunk(&self.reader, at, chunk, &self.bytes, &NoPglz).map_err(wrong)?;
                if let Some(finding) = finding {
                    tell(format!("{name}, chunk {chunk}"), finding);
                }
            }
        }
        Ok(found)
    }
}

/// So many NULLs.
fn nulls(logical: LogicalType, rows: usize) -> Vector {
    let mut builder = VectorBuilder::new(logical);
    (0..rows).for_each(|_| builder.push_null());
    builder.finish(&|_, _, _| Box::default())
}
