//! A Parquet file from rows, a row group at a time.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{
    BrotliLevel, Compression, GzipLevel, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
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
    /// Begins a file of columns that may be NULL: integers, reals, text and bytes. Other kinds are an error.
    pub fn new(out: W, fields: &[Field], codec: Codec) -> Result<Self> {
        let column = |field: &Field| {
            let (physical, logical) = match field.kind {
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

#[cfg(test)]
mod tests {
    use super::{Codec, ParquetWriter};
    use crate::parquet::ParquetReader;
    use crate::{Field, FieldKind};
    use vector::{LogicalType, Vector, VectorBuilder};

    fn column(logical: LogicalType, rows: u32, push: impl Fn(&mut VectorBuilder, u32) -> bool) -> Vector {
        let mut builder = VectorBuilder::new(logical);
        for row in 0..rows {
            match row % 5 {
                3 => builder.push_null(),
                _ => assert!(push(&mut builder, row)),
            }
        }
        builder.finish(&|_, _, _| Box::default())
    }

    #[test]
    fn what_is_written_is_read() {
        let kinds = [FieldKind::Integer, FieldKind::Real, FieldKind::Text, FieldKind::Bytes];
        let fields = kinds.iter().zip(["i", "r", "t", "b.c"]);
        let fields: Vec<Field> = fields.map(|(&kind, name)| Field { name: name.into(), kind }).collect();
        let group = |rows| {
            [
                column(LogicalType::Int64, rows, |to, row| to.push_i64(i64::from(row) * 7919 - 5)),
                column(LogicalType::Float64, rows, |to, row| to.push_f64(f64::from(row % 9) / 7.0)),
                column(LogicalType::Text, rows, |to, row| {
                    to.push_bytes(format!("text {}", row % 11).as_bytes())
                }),
                column(LogicalType::Bytes, rows, |to, row| to.push_bytes(&row.to_le_bytes())),
            ]
        };
        let path = std::env::temp_dir().join(format!("colonnade-files-{}.parquet", std::process::id()));
        for (name, codec) in Codec::ALL {
            for groups in [&[][..], &[1], &[1000, 1, 300]] {
                let file = std::fs::File::create(&path).unwrap();
                let mut writer = ParquetWriter::new(file, &fields, codec).unwrap();
                groups.iter().for_each(|&rows| writer.write(&group(rows)).unwrap());
                drop(writer.finish().unwrap());
                let mut reader = ParquetReader::open(&path).unwrap();
                assert_eq!(reader.fields(), fields);
                assert_eq!(reader.rows(), groups.iter().map(|&rows| u64::from(rows)).sum::<u64>());
                for &rows in groups {
                    let mut found: Vec<Vec<Vector>> = vec![Vec::new(); fields.len()];
                    let mut left = rows as usize;
                    while left > 0 {
                        let part = reader.next(77).unwrap().unwrap();
                        left -= part[0].len();
                        found.iter_mut().zip(part).for_each(|(all, one)| all.push(one));
                    }
                    for (found, written) in found.into_iter().zip(group(rows)) {
                        let found = vector::concat(written.logical, found).unwrap();
                        let same = (0..written.len()).all(|row| found.is_valid(row) == written.is_valid(row));
                        assert!(same && found.null_count() == written.null_count(), "{name}, {rows} rows");
                        assert_eq!(found.values, written.values, "{name}, {rows} rows");
                    }
                }
                assert!(reader.next(77).unwrap().is_none());
            }
        }
        std::fs::remove_file(path).unwrap();
    }
}
