//! A Parquet file from rows, a row group at a time.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{
    BrotliLevel, Compression, GzipLevel, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use vector::{Bitmap, ByteViews, Values, Vector};

use crate::{Error, Field, FieldKind, Result};

/// Rows of a page, at most. Other readers go page by page as well.
const PAGE_ROWS: usize = 1 << 17;

/// What pages are compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Nothing.
    None,
    /// Snappy.
    Snappy,
    /// LZ4, without a frame.
    Lz4,
    /// Zstandard, at its level 3.
    Zstd,
    /// Gzip, at its level 6.
    Gzip,
    /// Brotli, at its level 1.
    Brotli,
}

impl Codec {
    /// All of them.
    pub const ALL: [(&'static str, Self); 6] = [
        ("none", Self::None),
        ("snappy", Self::Snappy),
        ("lz4", Self::Lz4),
        ("zstd", Self::Zstd),
        ("gzip", Self::Gzip),
        ("brotli", Self::Brotli),
    ];

    fn compression(self) -> Result<Compression> {
        Ok(match self {
            Self::None => Compression::UNCOMPRESSED,
            Self::Snappy => Compression::SNAPPY,
            Self::Lz4 => Compression::LZ4_RAW,
            Self::Zstd => Compression::ZSTD(ZstdLevel::try_new(3)?),
            Self::Gzip => Compression::GZIP(GzipLevel::try_new(6)?),
            Self::Brotli => Compression::BROTLI(BrotliLevel::try_new(1)?),
        })
    }
}

/// A Parquet file that is being written.
pub struct ParquetWriter<W: Write + Send> {
    schema: Arc<Type>,
    names: Vec<String>,
    codec: Codec,
    state: State<W>,
}

enum State<W: Write + Send> {
    /// No row has come.
    Begun(W),
    Open(SerializedFileWriter<W>),
    /// An error came in between.
    Lost,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file of columns that may be NULL. An error for kinds that are not written: truth values,
    /// integers, reals, text and bytes are.
    pub fn new(out: W, fields: &[Field], codec: Codec) -> Result<Self> {
        let column = |field: &Field| {
            let (physical, logical) = match field.kind {
                FieldKind::Bool => (Physical::BOOLEAN, None),
                FieldKind::Integer => (Physical::INT64, None),
                FieldKind::Real => (Physical::DOUBLE, None),
                FieldKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                FieldKind::Bytes => (Physical::BYTE_ARRAY, None),
                other => return Err(Error::Unsupported(format!("{other:?} is not written"))),
            };
            let built = Type::primitive_type_builder(&field.name, physical);
            let built = built.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()?;
            Ok(Arc::new(built))
        };
        let columns = fields.iter().map(column).collect::<Result<_>>()?;
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(columns).build()?);
        let names = fields.iter().map(|field| field.name.clone()).collect();
        Ok(Self { schema, names, codec, state: State::Begun(out) })
    }

    /// The file, opened with what the first rows say of its columns.
    fn open(&mut self, first: &[Vector]) -> Result<SerializedFileWriter<W>> {
        match std::mem::replace(&mut self.state, State::Lost) {
            State::Open(file) => Ok(file),
            State::Begun(out) => {
                let mut properties = WriterProperties::builder()
                    .set_compression(self.codec.compression()?)
                    .set_data_page_row_count_limit(PAGE_ROWS)
                    .set_created_by(format!("colonnade {}", env!("CARGO_PKG_VERSION")));
                for (name, column) in self.names.iter().zip(first) {
                    let path = ColumnPath::new(vec![name.clone()]);
                    properties = properties.set_column_dictionary_enabled(path, repeats(column));
                }
                let (schema, properties) = (Arc::clone(&self.schema), Arc::new(properties.build()));
                Ok(SerializedFileWriter::new(out, schema, properties)?)
            }
            State::Lost => Err(Error::Malformed("an earlier write has failed".into())),
        }
    }

    /// Writes rows as a row group: a flat vector for each column, of its kind.
    pub fn write(&mut self, columns: &[Vector]) -> Result<()> {
        let mut file = self.open(columns)?;
        let mut group = file.next_row_group()?;
        for column in columns {
            let Some(mut writer) = group.next_column()? else { break };
            write_column(&mut writer, column)?;
            writer.close()?;
        }
        group.close()?;
        self.state = State::Open(file);
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W> {
        Ok(self.open(&[])?.into_inner()?)
    }
}

/// Whether values come so often that a dictionary of them is worth its room.
fn repeats(column: &Vector) -> bool {
    let mut distinct: HashSet<u64> = HashSet::new();
    let most = column.len() / 4;
    let state = RandomState::new();
    let mut add = |hash: u64| {
        distinct.insert(hash);
        distinct.len() <= most
    };
    match &column.values {
        Values::Int64(values) => values.iter().all(|&value| add(value.cast_unsigned())),
        Values::Float64(values) => values.iter().all(|value| add(value.to_bits())),
        Values::Bytes(views) => (0..views.len()).all(|row| add(state.hash_one(views.get(row)))),
        _ => false,
    }
}

fn write_column(writer: &mut SerializedColumnWriter<'_>, column: &Vector) -> Result<()> {
    let validity = column.validity.as_ref();
    let levels: Vec<i16> = match validity {
        None => vec![1; column.len()],
        Some(validity) => validity.iter().map(i16::from).collect(),
    };
    let levels = Some(levels.as_slice());
    match &column.values {
        Values::Bool(bits) => {
            let bits: Vec<bool> = bits.iter().collect();
            writer.typed::<BoolType>().write_batch(&valid(&bits, validity), levels, None)?
        }
        Values::Int64(values) => {
            writer.typed::<Int64Type>().write_batch(&valid(values, validity), levels, None)?
        }
        Values::Float64(values) => {
            writer.typed::<DoubleType>().write_batch(&valid(values, validity), levels, None)?
        }
        Values::Bytes(views) => {
            writer.typed::<ByteArrayType>().write_batch(&byte_arrays(views, validity), levels, None)?
        }
        _ => return Err(Error::Unsupported(format!("{:?} is not written", column.logical))),
    };
    Ok(())
}

/// The values that are not NULL.
fn valid<V: Copy>(values: &[V], validity: Option<&Bitmap>) -> Vec<V> {
    match validity {
        None => values.to_vec(),
        Some(validity) => validity.ones().filter_map(|row| values.get(row).copied()).collect(),
    }
}

/// The same of bytes. They share one piece of memory.
fn byte_arrays(views: &ByteViews, validity: Option<&Bitmap>) -> Vec<ByteArray> {
    let rows: Vec<usize> = match validity {
        None => (0..views.len()).collect(),
        Some(validity) => validity.ones().collect(),
    };
    let mut all = Vec::new();
    let mut ends = Vec::with_capacity(rows.len());
    for row in rows {
        all.extend_from_slice(views.get(row));
        ends.push(all.len());
    }
    let all = Bytes::from(all);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, &end)| ByteArray::from(all.slice(start..end))).collect()
}
