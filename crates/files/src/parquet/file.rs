//! A Parquet file as a scan sees it: its columns, and its row groups as stripes.
//!
//! Called by hosts that read tables over such files. The footer is read once and kept (`ParquetFile`). A host
//! says which columns a table has (`ParquetFile::table`), and opens row groups (`group::RowGroup`) of it.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::ColumnOrder;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader};
use parquet::schema::types::ColumnDescPtr;
use stripe::{ColumnStatistics, write_summary};
use vector::{LogicalType, Vector};

use super::nested::{self, Found, Nested};
use super::nested_array::Array;
use super::read::guarded;
use super::{bounds, columns, footer_schema, schema};
use crate::column::{Column, Ranges};
use crate::{Error, Field, FieldKind, Result, same};

/// Bytes from the end of a file that are read first. Most footers fit.
const FIRST_READ: u64 = 64 << 10;

/// The footer of a Parquet file.
#[derive(Debug)]
pub struct ParquetFile {
    pub(super) metadata: ParquetMetaData,
    /// Its columns of single values.
    pub(super) leaves: Vec<Field>,
    /// What may be read of it: such columns, lists, maps and structs.
    found: Vec<Found>,
    /// Those of them that are no structs.
    fields: Vec<Field>,
}

/// A column of a table that is read from a file.
#[derive(Debug, Clone)]
pub(super) struct ReadColumn {
    /// Its number in the file.
    pub at: usize,
    pub description: ColumnDescPtr,
    pub field: Field,
    /// What the values become.
    pub kind: FieldKind,
    pub logical: LogicalType,
}

/// A list, map or struct that a table reads as one value.
#[derive(Debug, Clone)]
pub(super) struct NestedColumn {
    pub nested: Nested,
    /// What errors call it.
    pub name: String,
    /// What its values become: JSON as text, or jsonb.
    pub kind: FieldKind,
    /// The array that its lists become, if they do not become JSON.
    pub array: Option<Array>,
    pub logical: LogicalType,
}

/// A column that a table wants of a file.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Its name and type.
    pub column: &'a Column,
    /// What all rows have in it where the file has no such column: a flat vector of one value.
    pub otherwise: Option<Vector>,
}

/// Where a table has a column from.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// The file.
    Read(Arc<ReadColumn>),
    /// Several columns of the file.
    Nested(NestedColumn),
    /// All rows have this value.
    Same(Arc<Vector>),
}

/// The columns of a table in the order of its attributes. None stands for those that it has no more.
#[derive(Debug, Clone)]
pub struct TableColumns(pub(super) Arc<[Option<Place>]>);

impl Place {
    pub fn logical(&self) -> LogicalType {
        match self {
            Self::Read(column) => column.logical,
            Self::Nested(column) => column.logical,
            Self::Same(value) => value.logical,
        }
    }
}

impl ParquetFile {
    /// Reads a footer.
    ///
    /// # Errors
    /// `Io`, and `Malformed` where it is no Parquet file.
    pub fn open(source: &dyn Ranges) -> Result<Self> {
        guarded(|| {
            let metadata = footer(source)?;
            let schema = metadata.file_metadata().schema_descr();
            let leaves = schema.columns().iter().map(|column| schema::field(column)).collect();
            let found = nested::columns(schema)?;
            let fields = found.iter().filter(|found| !found.is_struct());
            let fields = fields.map(|found| found.field.clone()).collect();
            Ok(Self { metadata, leaves, found, fields })
        })
    }

    /// Its columns. Lists and maps are one each, and so is each part of a struct.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Whether it has a column of this name, also a struct.
    pub fn has(&self, name: &str) -> bool {
        self.found.iter().any(|found| found.field.name == name)
    }

    /// Whether there are structs, which a table may also read as one column.
    pub fn has_structs(&self) -> bool {
        self.fields.len() < self.found.len()
    }

    /// Rows of each row group.
    pub fn group_rows(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let rows = |rows: i64| u64::try_from(rows).unwrap_or(0);
        self.metadata.row_groups().iter().map(move |group| rows(group.num_rows()))
    }

    /// About how much memory it takes, in bytes.
    pub fn memory(&self) -> usize {
        let names = self.leaves.iter().chain(&self.fields).chain(self.found.iter().map(|found| &found.field));
        // Columns have parts of the schema, too.
        let named = names.map(|field| size_of::<Found>() + field.name.len());
        self.metadata.memory_size() + named.sum::<usize>()
    }

    /// Where the columns of a table are in the file: each is the one of its name.
    ///
    /// # Errors
    /// `Unsupported` where the file has no such column, or one of another type.
    pub fn table(&self, wanted: Vec<Option<Wanted<'_>>>) -> Result<TableColumns> {
        let all = self.metadata.file_metadata().schema_descr().columns();
        let find = |Wanted { column, otherwise }: Wanted<'_>| {
            let named = |found: &&Found| found.field.name == column.name;
            let a_struct = self.found.iter().find(|found| found.is_struct() && named(found));
            let mut named = self.found.iter().filter(|found| !found.is_struct() && named(found));
            let found = match (named.next(), named.next(), otherwise) {
                (Some(found), None, _) => found,
                (None, _, None) if let Some(found) = a_struct => found,
                (None, _, Some(value)) => return Ok(Place::Same(Arc::new(value))),
                (None, _, None) => {
                    return Err(Error::Unsupported(format!("it has no column \"{}\"", column.name)));
                }
                (Some(_), Some(_), _) => {
                    return Err(Error::Unsupported(format!("it has two columns \"{}\"", column.name)));
                }
            };
            let field = &found.field;
            let logical = column.logical;
            let Some(at) = found.column() else {
                let array = Array::of(&found.nested, column)?;
                let kind = if array.is_some() { field.kind } else { columns::read_as(field, column)? };
                let (nested, name) = (found.nested.clone(), field.name.clone());
                return Ok(Place::Nested(NestedColumn { nested, name, kind, array, logical }));
            };
            let kind = columns::read_as(field, column)?;
            let Some(description) = all.get(at).cloned() else {
                return Err(Error::Malformed(format!("it has no column {at}")));
            };
            let read = ReadColumn { at, description, field: field.clone(), kind, logical };
            Ok(Place::Read(Arc::new(read)))
        };
        let found = wanted.into_iter().map(|column| column.map(find).transpose());
        found.collect::<Result<Vec<_>>>().map(|found| TableColumns(found.into()))
    }

    /// A summary of a row group, as those of stripes are (`stripe::write_summary`).
    ///
    /// # Errors
    /// `Malformed` where the file is.
    pub fn summary(&self, group: usize, columns: &TableColumns) -> Result<Vec<u8>> {
        let rows = self.rows_of(group)?;
        let known = columns.0.iter().map(|column| match column {
            // No summary says that NULLs were not counted. Of a type that the column has not, nothing is
            // taken but that some rows may be NULL.
            Some(Place::Nested(_)) if rows > 1 => {
                Some((LogicalType::Bool, ColumnStatistics::unknown(rows, rows / 2)))
            }
            Some(place) => Some((place.logical(), self.statistics(group, place)?)),
            None => Some((LogicalType::Bool, ColumnStatistics::unknown(rows, rows))),
        });
        // A group of which NULLs are not counted says nothing.
        let known: Vec<_> = known.collect::<Option<_>>().unwrap_or_default();
        write_summary(rows, &known).map_err(|problem| Error::Malformed(problem.to_string()))
    }

    /// Rows of a row group.
    pub(super) fn rows_of(&self, group: usize) -> Result<u32> {
        let rows = self.metadata.row_groups().get(group).map_or(0, |group| group.num_rows());
        u32::try_from(rows).map_err(|_| Error::Unsupported(format!("a row group of {rows} rows")))
    }

    /// How values of a column compare.
    pub(super) fn order(&self, column: &ReadColumn) -> ColumnOrder {
        self.metadata.file_metadata().column_order(column.at)
    }

    pub(super) fn statistics(&self, group: usize, place: &Place) -> Option<ColumnStatistics> {
        let metadata = self.metadata.row_groups().get(group)?;
        let rows = u32::try_from(metadata.num_rows()).ok()?;
        let column = match place {
            Place::Read(column) => column,
            Place::Same(value) => return same::statistics(value, rows),
            Place::Nested(_) => return None,
        };
        bounds::statistics(metadata.columns().get(column.at)?, column, rows, self.order(column))
    }
}

/// Reads the footer from the end of a file. How long it is, its last bytes say.
pub(super) fn footer(source: &dyn Ranges) -> Result<ParquetMetaData> {
    let length = source.length()?;
    let mut wanted = FIRST_READ.min(length);
    loop {
        let mut end = Vec::new();
        source.read(length - wanted..length, &mut end)?;
        let schema = whole(&end).map(footer_schema::read).transpose()?;
        let is_whole = schema.is_some();
        let options = schema.map(|schema| ParquetMetaDataOptions::new().with_schema(schema));
        let mut reader = ParquetMetaDataReader::new().with_metadata_options(options);
        match reader.try_parse_sized(&Bytes::from(end), length) {
            Err(ParquetError::NeedMoreData(more)) if more as u64 > wanted && more as u64 <= length => {
                wanted = more as u64;
            }
            parsed => {
                parsed?;
                return match is_whole {
                    true => Ok(reader.finish()?),
                    false => Err(Error::Malformed("its end is not that of a Parquet file".into())),
                };
            }
        }
    }
}

/// The bytes of the footer, where all of them are at the end of these.
fn whole(end: &[u8]) -> Option<&[u8]> {
    let (rest, last) = end.split_last_chunk::<8>()?;
    let length = u32::from_le_bytes(*last.first_chunk()?) as usize;
    let start = rest.len().checked_sub(length).filter(|_| last.ends_with(b"PAR1"))?;
    rest.get(start..)
}
