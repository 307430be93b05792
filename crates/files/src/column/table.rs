//! The stripes of a column file by the columns of a table that did not write it.
//!
//! Called by hosts that have such tables. A table's columns are found by their names, and have to be of the
//! file's types. Nothing in the file is trusted: text is compared with the rules of UTF-8 when it is decoded.

use std::ops::Range;
use std::sync::Arc;

use encodings::BlockCodecs;
use server_bytes::numeric;
use stripe::{
    ColumnChunk, ColumnStatistics, OpenStripe, OwnedChunk, StripeBytes, StripeReader, Summary, write_summary,
};
use vector::{Error as VectorError, LogicalType, Predicate, Result as VectorResult, Scalar, Selection};
use vector::{Values, Vector};

use super::{Column, StripePlace};
use crate::parquet::is_text;
use crate::same::{self, SameChunk};
use crate::{Error, Result, json};

/// Where a file has the columns of a table. None: it is none of the file's.
#[derive(Debug, Clone)]
pub struct TableColumns(Arc<[Option<Found>]>);

/// A column of a file.
#[derive(Debug, Clone)]
struct Found {
    number: u32,
    logical: LogicalType,
    check: Check,
    /// What rows have that are older than it, as one row. None: NULL.
    default: Option<Arc<Vector>>,
}

/// What values of a file have to be, as nothing in it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// What their encoding makes of them.
    Nothing,
    Text,
    Json,
    Numeric,
}

/// Where a stripe has a column.
#[derive(Debug, Clone)]
enum Place {
    Stored(usize),
    /// It is older than the column. All its rows have this value.
    Default(Arc<Vector>),
    /// It is older than the column, or the table has none.
    Nowhere,
}

impl TableColumns {
    /// Finds the columns of a table among those of a file. `defaults` are those of the file
    /// (`ColumnFile::defaults`).
    ///
    /// # Errors
    /// `Unsupported` where the file does not have one, or has it of another type; `Malformed` where a default
    /// is no text.
    pub fn find(
        file: &[Column],
        defaults: &[Option<Arc<Vector>>],
        wanted: &[Option<Column>],
    ) -> Result<Self> {
        let find = |wanted: &Column| {
            let Some((at, found)) = file.iter().enumerate().find(|(_, column)| column.name == wanted.name)
            else {
                return Err(Error::Unsupported(format!("it has no column \"{}\"", wanted.name)));
            };
            // Of unsigned integers there is one type, whose schema a file names or not.
            let is_same = found.logical == LogicalType::UInt64 || holds(&found.declared, &wanted.declared);
            if found.logical == wanted.logical && is_same {
                let check = match found.logical {
                    LogicalType::Text => Check::Text,
                    LogicalType::Numeric => Check::Numeric,
                    LogicalType::Bytes if found.declared == "json" => Check::Json,
                    _ => Check::Nothing,
                };
                let default = defaults.get(at).cloned().flatten();
                if let Some(why) = default.as_ref().and_then(|value| check.refuse(value)) {
                    return Err(Error::Malformed(format!("the default of column {} is {why}", found.name)));
                }
                return Ok(Found { number: found.number, logical: found.logical, check, default });
            }
            let (is, other) = (&found.declared, &wanted.declared);
            Err(Error::Unsupported(format!("its column \"{}\" is {is}, and the table's {other}", found.name)))
        };
        let all = wanted.iter().map(|column| column.as_ref().map(find).transpose());
        all.collect::<Result<Vec<_>>>().map(|found| Self(found.into()))
    }

    /// Where a stripe has them.
    fn places(&self, stripe: &StripePlace) -> Vec<Place> {
        let place = |column: &Option<Found>| {
            let Some(column) = column else { return Place::Nowhere };
            match stripe.columns.iter().position(|own| *own == column.number) {
                Some(place) => Place::Stored(place),
                None => column.default.clone().map_or(Place::Nowhere, Place::Default),
            }
        };
        self.0.iter().map(place).collect()
    }

    /// A summary of a stripe by the columns of the table (`stripe::write_summary`).
    ///
    /// # Errors
    /// `Malformed` where its own is damaged, or of other types.
    pub fn summary(&self, stripe: &StripePlace) -> Result<Vec<u8>> {
        let made = || {
            let own = Summary::open(&stripe.summary)?;
            let places = self.places(stripe);
            let of_column = |(column, place): (&Option<Found>, &Place)| {
                let nulls = || ColumnStatistics::unknown(stripe.rows, stripe.rows);
                let Some(Found { logical, .. }) = *column else { return Ok((LogicalType::Bool, nulls())) };
                let place = match place {
                    Place::Stored(place) => *place,
                    Place::Nowhere => return Ok((logical, nulls())),
                    // Of what is not known only that it is not NULL.
                    Place::Default(value) => {
                        let known = same::statistics(value, stripe.rows);
                        return Ok((
                            logical,
                            known.unwrap_or_else(|| ColumnStatistics::unknown(stripe.rows, 0)),
                        ));
                    }
                };
                match own.column(place)? {
                    Some((own, statistics)) if own == logical => Ok((logical, statistics)),
                    _ => Err(VectorError::corrupt("a summary of other types than the columns")),
                }
            };
            let all = self.0.iter().zip(&places).map(of_column).collect::<VectorResult<Vec<_>>>()?;
            write_summary(stripe.rows, &all)
        };
        let at = stripe.bytes.start;
        made().map_err(|error| super::broken(&format!("summary of the stripe at byte {at}"), &error))
    }
}

/// Whether values of a declared type are values of another as they are.
fn holds(from: &str, to: &str) -> bool {
    let is_any_text = matches!(to, "text" | "character varying");
    from == to || (is_any_text && (from == "text" || from.starts_with("character varying")))
}

/// A stripe by the columns of a table.
#[derive(Debug)]
pub struct TableStripe {
    reader: StripeReader,
    places: Vec<Place>,
    columns: TableColumns,
    /// Statistics of defaults, in the order of `places`: of the stripe, of a chunk, of the last chunk.
    of_defaults: Vec<Option<[ColumnStatistics; 3]>>,
}

impl TableStripe {
    /// Opens a stripe.
    ///
    /// # Errors
    /// `Corrupt` for damaged bytes and for other rows or types than the file says; `Host` where they cannot
    /// be read.
    pub fn open(stripe: &StripePlace, columns: &TableColumns, bytes: &dyn StripeBytes) -> VectorResult<Self> {
        let mut footer = Vec::new();
        bytes.read(stripe.footer.clone(), &mut footer)?;
        let reader = StripeReader::open(&footer)?;
        let places = columns.places(stripe);
        let is_same = |(column, place): (&Option<Found>, &Place)| match (column, place) {
            (Some(Found { logical, .. }), Place::Stored(place)) => reader.logical(*place) == Some(*logical),
            _ => true,
        };
        if reader.row_count() != stripe.rows || !columns.0.iter().zip(&places).all(is_same) {
            return Err(VectorError::corrupt("a stripe of other rows or types than the file says"));
        }
        let rows_of = |chunk: u32| reader.chunk_rows(chunk).len() as u32;
        let last = reader.chunk_count().saturating_sub(1);
        let of_default = |place: &Place| {
            let Place::Default(value) = place else { return None };
            let of_rows = |rows| same::statistics(value, rows);
            Some([of_rows(stripe.rows)?, of_rows(rows_of(0))?, of_rows(rows_of(last))?])
        };
        let of_defaults = places.iter().map(of_default).collect();
        Ok(Self { reader, places, columns: columns.clone(), of_defaults })
    }

    fn place(&self, column: usize) -> Option<usize> {
        match self.places.get(column)? {
            Place::Stored(place) => Some(*place),
            Place::Default(_) | Place::Nowhere => None,
        }
    }

    /// What all rows have in a column that is younger than the stripe.
    fn default(&self, column: usize) -> Option<&Arc<Vector>> {
        match self.places.get(column)? {
            Place::Default(value) => Some(value),
            Place::Stored(_) | Place::Nowhere => None,
        }
    }

    fn of_default(&self, column: usize) -> Option<&[ColumnStatistics; 3]> {
        self.of_defaults.get(column)?.as_ref()
    }

    fn known_place(&self, column: usize) -> VectorResult<usize> {
        let missing = || VectorError::InvalidInput(format!("the stripe has no column {column}"));
        self.place(column).ok_or_else(missing)
    }
}

impl OpenStripe for TableStripe {
    fn logical(&self, column: usize) -> Option<LogicalType> {
        match self.default(column) {
            Some(value) => Some(value.logical),
            None => self.reader.logical(self.place(column)?),
        }
    }

    fn chunk_count(&self) -> u32 {
        self.reader.chunk_count()
    }

    fn chunk_rows(&self, chunk: u32) -> Range<u32> {
        self.reader.chunk_rows(chunk)
    }

    fn column_statistics(
        &self,
        column: usize,
        bytes: &dyn StripeBytes,
    ) -> VectorResult<Option<&ColumnStatistics>> {
        if self.default(column).is_some() {
            return Ok(self.of_default(column).map(|[of_stripe, ..]| of_stripe));
        }
        OpenStripe::column_statistics(&self.reader, self.known_place(column)?, bytes)
    }

    fn statistics(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
    ) -> VectorResult<Option<&ColumnStatistics>> {
        if self.default(column).is_some() {
            let is_last = chunk + 1 == self.chunk_count();
            let known = self.of_default(column);
            return Ok(known.map(|[_, any, last]| if is_last { last } else { any }));
        }
        OpenStripe::statistics(&self.reader, self.known_place(column)?, chunk, bytes)
    }

    fn may_have(
        &self,
        column: usize,
        chunk: Option<u32>,
        values: &[Scalar],
        is_inside: &dyn Fn(&Scalar) -> bool,
        bytes: &dyn StripeBytes,
    ) -> VectorResult<bool> {
        match self.place(column) {
            Some(place) => self.reader.may_have(place, chunk, values, is_inside, bytes),
            None => Ok(true),
        }
    }

    fn has_side_values(&self, column: usize, chunk: u32, bytes: &dyn StripeBytes) -> VectorResult<bool> {
        if self.default(column).is_some() {
            return Ok(self.of_default(column).is_none_or(|[known, ..]| known.side_rows > 0));
        }
        self.reader.has_side_values(self.known_place(column)?, chunk, bytes)
    }

    fn read_chunk(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
        codecs: &'static dyn BlockCodecs,
    ) -> VectorResult<Box<dyn ColumnChunk>> {
        if let Some(value) = self.default(column) {
            let rows = self.chunk_rows(chunk);
            return Ok(Box::new(SameChunk { value: Arc::clone(value), rows: rows.end - rows.start }));
        }
        let place = self.known_place(column)?;
        let read = self.reader.read_chunk_unverified(place, chunk, bytes, codecs)?;
        let check =
            self.columns.0.get(column).and_then(Option::as_ref).map_or(Check::Text, |found| found.check);
        Ok(match check {
            Check::Nothing => Box::new(read),
            _ => Box::new(CheckedChunk(read, check)),
        })
    }
}

/// Values of a file that somebody else wrote.
struct CheckedChunk(OwnedChunk, Check);

impl CheckedChunk {
    /// The values, if they are what they are to be.
    fn checked(&self, values: Vector) -> VectorResult<Vector> {
        match self.1.refuse(&values) {
            None => Ok(values),
            Some(why) => Err(VectorError::corrupt(why)),
        }
    }
}

impl Check {
    /// What is wrong with a value of a vector, also with one that no row has.
    fn refuse(self, vector: &Vector) -> Option<&'static str> {
        let is_wrong = |value: &[u8]| match self {
            Self::Nothing | Self::Numeric => None,
            Self::Text => (!is_text(value)).then_some("text that is not UTF-8"),
            Self::Json => json::check(value, "").is_err().then_some("JSON that is none"),
        };
        match &vector.values {
            _ if self == Self::Nothing => None,
            Values::Bytes(values) => {
                let is_valid = |row| vector.validity.as_ref().is_none_or(|validity| validity.get(row));
                (0..vector.len()).filter(|row| is_valid(*row)).find_map(|row| is_wrong(values.get(row)))
            }
            // What is no scaled integer goes to the server as it is.
            Values::Numeric(values) if self == Self::Numeric => {
                let is_sound = |(_, bytes): &(u32, Box<[u8]>)| numeric::is_sound(bytes);
                (!values.side.iter().all(is_sound)).then_some("a numeric that is none")
            }
            Values::Constant(value, _) => self.refuse(value),
            Values::Dictionary { dictionary, .. } => self.refuse(&dictionary.entries),
            Values::Runs { values, .. } => self.refuse(values),
            _ if self == Self::Numeric => None,
            _ => Some("text that is none"),
        }
    }
}

impl ColumnChunk for CheckedChunk {
    fn rows(&self) -> u32 {
        self.0.rows()
    }

    fn stored_bytes(&self) -> u64 {
        self.0.stored_bytes()
    }

    fn verify(&mut self) -> VectorResult<()> {
        self.0.verify()
    }

    fn filter(
        &self,
        predicate: &Predicate,
        selection: &mut Selection,
        codecs: &dyn BlockCodecs,
    ) -> VectorResult<bool> {
        self.0.filter(predicate, selection, codecs)
    }

    fn decode(&self, codecs: &dyn BlockCodecs) -> VectorResult<Vector> {
        self.checked(self.0.decode(codecs)?)
    }

    fn take(&self, rows: &[u32], codecs: &dyn BlockCodecs) -> VectorResult<Vector> {
        self.checked(self.0.take(rows, codecs)?)
    }
}
