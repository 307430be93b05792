//! Rows of a Parquet file, some at a time.
//!
//! Each column that is read has a reader of its own within a row group, which goes from page to page. So a
//! few pages of each column are in memory, however long the row group is.

use std::cell::RefCell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::schema::types::ColumnDescPtr;
use vector::{Bitmap, LogicalType, Values, Vector, VectorBuilder};

use super::file::footer;
use super::nested::{self, Found};
use super::nested_text::Form;
use super::plain;
use super::records::{self, Records};
use super::schema;
use crate::{Error, Field, FieldKind, Result, json};

/// What reads a column in a row group.
enum Reading {
    Own(Box<ColumnReader>),
    Nested(Box<Records>),
}

/// A Parquet file that is being read.
pub struct ParquetReader {
    file: SerializedFileReader<File>,
    columns: Vec<Found>,
    /// Positions of those that are read, and the form of those that are text then.
    chosen: Vec<(usize, Form)>,
    /// The next row group.
    group: usize,
    /// Readers of the columns in the row group that is being read.
    readers: Vec<Reading>,
    /// Rows of that row group that were not read, and how many of them may be read at once.
    left: usize,
    most: usize,
}

impl ParquetReader {
    /// Opens a file, of which all columns are going to be read but for structs, whose parts are.
    pub fn open(path: &Path) -> Result<Self> {
        Self::read(File::open(path)?)
    }

    /// As `open`, of a file that is open.
    pub fn read(file: File) -> Result<Self> {
        guarded(|| Self::of(file))
    }

    fn of(file: File) -> Result<Self> {
        // The crate's own way there has no limit on how deep the schema nests.
        let schema = footer(&file)?.file_metadata().schema_descr_ptr();
        let options = ReadOptionsBuilder::new().with_parquet_schema(schema).build();
        let file = SerializedFileReader::new_with_options(file, options)?;
        let columns = nested::columns(file.metadata().file_metadata().schema_descr())?;
        let mut read =
            Self { file, columns, chosen: Vec::new(), group: 0, readers: Vec::new(), left: 0, most: 0 };
        read.choose(read.parts().into_iter().map(|at| (at, Form::Json)));
        Ok(read)
    }

    /// All columns: those of the file, then structs as one value each. Lists and maps are one value.
    pub fn fields(&self) -> Vec<Field> {
        self.columns.iter().map(|column| column.field.clone()).collect()
    }

    /// Positions among `fields` of the columns that are part of no struct, in the file's order.
    pub fn outermost(&self) -> Vec<usize> {
        let mut found = self.positions(|column| column.is_outermost);
        found.sort_by_key(|&at| self.columns.get(at).map(|column| column.nested.root.leaves.start));
        found
    }

    /// Positions among `fields` of those that are no structs, in the file's order.
    pub fn parts(&self) -> Vec<usize> {
        self.positions(|column| !column.is_struct())
    }

    fn positions(&self, is_wanted: impl Fn(&Found) -> bool) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        columns.filter(|(_, column)| is_wanted(column)).map(|(at, _)| at).collect()
    }

    /// Reads no other columns than these, by their positions among `fields`, in this order, each in a form.
    /// Before the first row.
    pub fn choose(&mut self, wanted: impl IntoIterator<Item = (usize, Form)>) {
        self.chosen = wanted.into_iter().filter(|(at, _)| *at < self.columns.len()).collect();
    }

    /// Rows of the file.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// The next rows, at most so many: a flat vector for each column. None at the end. An error for a column
    /// whose values are not read, and for bytes that are not Parquet's.
    pub fn next(&mut self, most: usize) -> Result<Option<Vec<Vector>>> {
        guarded(|| self.next_rows(most))
    }

    fn next_rows(&mut self, most: usize) -> Result<Option<Vec<Vector>>> {
        while self.left == 0 {
            if self.group >= self.file.num_row_groups() {
                return Ok(None);
            }
            self.next_group()?;
        }
        let rows = most.min(self.left).min(self.most);
        self.left -= rows;
        let chosen = self.chosen.iter().filter_map(|&(at, _)| self.columns.get(at));
        let vector = |(reader, column): (&mut Reading, &Found)| match (reader, column.nested.leaves()) {
            (Reading::Own(reader), [leaf, ..]) => vector(reader, &leaf.description, &column.field, rows),
            (Reading::Own(_), []) => Err(Error::Malformed("a value without columns".into())),
            (Reading::Nested(records), _) => records.read(rows),
        };
        self.readers.iter_mut().zip(chosen).map(vector).collect::<Result<_>>().map(Some)
    }

    fn next_group(&mut self) -> Result<()> {
        let group = self.file.get_row_group(self.group)?;
        self.group += 1;
        self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        self.most = self.left;
        self.readers.clear();
        for &(at, form) in &self.chosen {
            let Some(column) = self.columns.get(at) else { continue };
            self.readers.push(match column.column() {
                Some(at) => Reading::Own(Box::new(group.get_column_reader(at)?)),
                None => {
                    self.most = self.most.min(column.nested.rows_at_once(group.metadata()));
                    let pages = |at: usize| Ok(group.get_column_page_reader(at)?);
                    Reading::Nested(Box::new(Records::open(&column.nested, form, pages)?))
                }
            });
        }
        Ok(())
    }
}

/// The parquet crate asserts what it takes for granted of a file. Here that is an error like others. The
/// reader is not used after one.
pub(super) fn guarded<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of an unknown kind");
        Err(Error::Malformed(format!("its parts contradict each other: {text}")))
    })
}

/// The next values of a column, with which rows have one.
fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    of: Of<'_>,
    rows: usize,
) -> Result<(Vec<T::T>, Option<Bitmap>)> {
    let greatest = of.column.max_def_level();
    if let Some(kept) = of.levels {
        let (mut kept, mut values) = (kept.borrow_mut(), Vec::new());
        let Levels { definition, repetition, .. } = &mut *kept;
        let (records, ..) = reader.read_records(rows, Some(definition), Some(repetition), &mut values)?;
        // Those that are zero everywhere are not stored.
        let entries = values.len().max(definition.len());
        definition.resize(entries, 0);
        repetition.resize(entries, 0);
        return match records == rows
            && definition.iter().filter(|level| **level == greatest).count() == values.len()
        {
            true => Ok((values, None)),
            false => Err(Error::Malformed(format!("column {} ends before its row group", of.field.name))),
        };
    }
    let mut values = Vec::with_capacity(rows);
    let mut levels = Vec::with_capacity(rows);
    let (records, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    let found = if greatest == 0 { values.len() } else { levels.len() };
    if records != rows || found != rows {
        return Err(Error::Malformed(format!(
            "column {} has {found} values where its row group has {rows}",
            of.field.name
        )));
    }
    if greatest == 0 || values.len() == rows {
        return Ok((values, None));
    }
    let mut validity = Bitmap::filled(rows, false);
    levels
        .iter()
        .enumerate()
        .filter(|(_, level)| **level == greatest)
        .for_each(|(row, _)| validity.set(row, true));
    if validity.count_ones() != values.len() {
        return Err(Error::Malformed(format!("column {}: values and NULLs do not add up", of.field.name)));
    }
    Ok((values, Some(validity)))
}

/// Values at their rows. A row without one gets the default.
fn spread<V, W: Clone + Default>(values: Vec<V>, validity: Option<&Bitmap>, make: impl Fn(V) -> W) -> Vec<W> {
    let Some(validity) = validity else { return values.into_iter().map(make).collect() };
    let mut out = vec![W::default(); validity.len()];
    for (row, value) in validity.ones().zip(values) {
        if let Some(slot) = out.get_mut(row) {
            *slot = make(value);
        }
    }
    out
}

/// Integers as the vector of a kind.
fn of_integers<V>(
    (values, validity): (Vec<V>, Option<Bitmap>),
    kind: FieldKind,
    make: impl Fn(V) -> i64,
) -> Vector {
    let make_unsigned = |value| make(value) ^ i64::MIN;
    let (logical, values) = match kind {
        FieldKind::Unsigned => (LogicalType::UInt64, spread(values, validity.as_ref(), make_unsigned)),
        _ => (LogicalType::Int64, spread(values, validity.as_ref(), make)),
    };
    Vector { logical, validity, values: Values::Int64(values) }
}

fn of_reals<V>((values, validity): (Vec<V>, Option<Bitmap>), make: impl Fn(V) -> f64) -> Vector {
    let values = Values::Float64(spread(values, validity.as_ref(), make));
    Vector { logical: LogicalType::Float64, validity, values }
}

/// Values row by row.
fn built<V>(
    (values, validity): (Vec<V>, Option<Bitmap>),
    logical: LogicalType,
    push: impl Fn(&mut VectorBuilder, V) -> bool,
) -> Result<Vector> {
    let mut builder = VectorBuilder::new(logical);
    let rows = validity.as_ref().map_or(values.len(), Bitmap::len);
    let mut values = values.into_iter();
    for row in 0..rows {
        let value =
            if validity.as_ref().is_none_or(|validity| validity.get(row)) { values.next() } else { None };
        let fits = value.map(|value| push(&mut builder, value));
        match fits {
            Some(false) => {
                return Err(Error::Unsupported("values past 4 GiB, or of another width".into()));
            }
            Some(true) => {}
            None => builder.push_null(),
        }
    }
    Ok(builder.finish(&|_, _, _| Box::default()))
}

/// A column of a file.
#[derive(Clone, Copy)]
struct Of<'a> {
    column: &'a ColumnDescPtr,
    field: &'a Field,
    /// Where the levels go of a column within lists or structs.
    levels: Option<&'a RefCell<Levels>>,
}

/// What Parquet says of each entry of a column within lists or structs: up to which of them there is a value,
/// and in which one it goes on.
#[derive(Default)]
pub(super) struct Levels {
    pub definition: Vec<i16>,
    pub repetition: Vec<i16>,
    /// Bytes that values may have, but for those of a fixed width.
    pub bytes: usize,
}

/// Passes over the next values of a column.
pub(super) fn skip(reader: &mut ColumnReader, field: &Field, rows: usize) -> Result<()> {
    let skipped = match reader {
        ColumnReader::BoolColumnReader(reader) => reader.skip_records(rows)?,
        ColumnReader::Int32ColumnReader(reader) => reader.skip_records(rows)?,
        ColumnReader::Int64ColumnReader(reader) => reader.skip_records(rows)?,
        ColumnReader::Int96ColumnReader(reader) => reader.skip_records(rows)?,
        ColumnReader::FloatColumnReader(reader) => reader.skip_records(rows)?,
        ColumnReader::DoubleColumnReader(reader) => reader.skip_records(rows)?,
        ColumnReader::ByteArrayColumnReader(reader) => reader.skip_records(rows)?,
        ColumnReader::FixedLenByteArrayColumnReader(reader) => reader.skip_records(rows)?,
    };
    match skipped == rows {
        true => Ok(()),
        false => Err(Error::Malformed(format!("column {} ends before its row group", field.name))),
    }
}

/// The next values of a column as a vector.
pub(super) fn vector(
    reader: &mut ColumnReader,
    column: &ColumnDescPtr,
    field: &Field,
    rows: usize,
) -> Result<Vector> {
    decoded(reader, Of { column, field, levels: None }, rows)
}

/// Adds the levels of the next rows of a column, and returns the values that are there, without gaps.
pub(super) fn entries(
    reader: &mut ColumnReader,
    column: &ColumnDescPtr,
    field: &Field,
    rows: usize,
    levels: &RefCell<Levels>,
) -> Result<Vector> {
    let values = decoded(reader, Of { column, field, levels: Some(levels) }, rows)?;
    if let (FieldKind::Json, Values::Bytes(all)) = (field.kind, &values.values) {
        // It becomes a part of other JSON.
        all.iter().try_for_each(|value| json::check(value, &field.name))?;
    }
    Ok(values)
}

fn decoded(reader: &mut ColumnReader, of: Of<'_>, rows: usize) -> Result<Vector> {
    let Of { column, field, .. } = of;
    let kind = field.kind;
    if let FieldKind::Other(what) = kind {
        return Err(Error::Unsupported(format!("column {} is {what}, which is not read", field.name)));
    }
    let decimal = |unscaled: i128| {
        let scale = if let FieldKind::Decimal { scale, .. } = kind { scale } else { 0 };
        move |builder: &mut VectorBuilder| builder.push_numeric(unscaled, scale, scale)
    };
    let is_decimal = matches!(kind, FieldKind::Decimal { .. });
    Ok(match reader {
        ColumnReader::BoolColumnReader(reader) => {
            built(values(reader, of, rows)?, LogicalType::Bool, VectorBuilder::push_bool)?
        }
        ColumnReader::Int32ColumnReader(reader) => {
            let found = values(reader, of, rows)?;
            match () {
                () if is_decimal => {
                    built(found, LogicalType::Numeric, |to, value: i32| decimal(value.into())(to))?
                }
                () if schema::is_unsigned(column) => {
                    of_integers(found, kind, |value: i32| i64::from(value.cast_unsigned()))
                }
                () => of_integers(found, kind, |value: i32| i64::from(value)),
            }
        }
        ColumnReader::Int64ColumnReader(reader) => {
            let found = values(reader, of, rows)?;
            match is_decimal {
                true => built(found, LogicalType::Numeric, |to, value: i64| decimal(value.into())(to))?,
                false => of_integers(found, kind, |value: i64| value),
            }
        }
        ColumnReader::Int96ColumnReader(reader) => {
            of_integers(values(reader, of, rows)?, kind, |value: Int96| value.to_micros())
        }
        ColumnReader::FloatColumnReader(reader) => {
            of_reals(values(reader, of, rows)?, |value: f32| f64::from(value))
        }
        ColumnReader::DoubleColumnReader(reader) => of_reals(values(reader, of, rows)?, |value: f64| value),
        ColumnReader::ByteArrayColumnReader(reader) => {
            let found = values(reader, of, rows)?;
            if let Some(levels) = of.levels {
                // Those of a dictionary share their memory up to here.
                let all = found.0.iter().map(ByteArray::len).fold(0, usize::saturating_add);
                let levels = &mut *levels.borrow_mut();
                levels.bytes = levels.bytes.checked_sub(all).ok_or_else(records::too_much)?;
            }
            of_bytes(found, field, |value: &ByteArray| value.data(), &decimal)?
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            let found = values(reader, of, rows)?;
            of_bytes(found, field, |value: &FixedLenByteArray| value.data(), &decimal)?
        }
    })
}

fn of_bytes<V, P: Fn(&mut VectorBuilder) -> bool>(
    found: (Vec<V>, Option<Bitmap>),
    field: &Field,
    bytes: impl Fn(&V) -> &[u8],
    decimal: &dyn Fn(i128) -> P,
) -> Result<Vector> {
    let logical = match field.kind {
        FieldKind::Text => LogicalType::Text,
        FieldKind::Uuid => LogicalType::Uuid,
        FieldKind::Decimal { .. } => LogicalType::Numeric,
        // Half floats.
        FieldKind::Real { .. } => LogicalType::Float64,
        _ => LogicalType::Bytes,
    };
    found.0.iter().try_for_each(|value| plain::fits(bytes(value).len()))?;
    let is_to_be_text = matches!(field.kind, FieldKind::Text | FieldKind::Json);
    if is_to_be_text && !found.0.iter().all(|value| is_text(bytes(value))) {
        return Err(Error::Malformed(format!("column {} has text that is not UTF-8", field.name)));
    }
    built(found, logical, |to, value| match logical {
        LogicalType::Numeric => big_endian(bytes(&value)).is_some_and(|unscaled| decimal(unscaled)(to)),
        LogicalType::Float64 => half(bytes(&value)).is_some_and(|real| to.push_f64(real)),
        LogicalType::Uuid if bytes(&value).len() != 16 => false,
        _ => to.push_bytes(bytes(&value)),
    })
}

/// Whether bytes are text that PostgreSQL can hold: UTF-8 without the character of number zero.
pub fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0)
}

/// A signed integer of up to sixteen bytes, greatest first.
pub(super) fn big_endian(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let fill = if first & 0x80 == 0 { 0 } else { 0xff };
    let mut whole = [fill; 16];
    whole.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(whole))
}

/// An IEEE 754 half, least byte first.
pub(super) fn half(bytes: &[u8]) -> Option<f64> {
    let bits = u16::from_le_bytes(bytes.try_into().ok()?);
    let (sign, exponent, fraction) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    Some(if sign == 1 { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::{big_endian, half};

    #[test]
    fn decimals_and_halves_are_read_from_bytes() {
        assert_eq!(big_endian(&[0xff]), Some(-1));
        assert_eq!(big_endian(&[0x00, 0xff]), Some(255));
        assert_eq!(big_endian(&[0x80; 16]), Some(i128::from_be_bytes([0x80; 16])));
        assert_eq!((big_endian(&[]), big_endian(&[0; 17])), (None, None));
        for (bits, real) in [
            (0x3c00u16, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2f64.powi(-24)),
            (0x7c00, f64::INFINITY),
        ] {
            assert_eq!(half(&bits.to_le_bytes()), Some(real));
        }
        assert!(half(&0x7e00u16.to_le_bytes()).is_some_and(f64::is_nan));
        assert_eq!(half(&[1]), None);
    }
}
