//! A Parquet file from rows, a row group at a time.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use vector::{LogicalType, Values, Vector};

use super::stored;
use super::written::{Leaf, Shredded, Written};
use crate::{Error, Field, Result};

/// Rows of a page, at most: those of a chunk of a scan (`group`). Readers leave pages out by their index.
const PAGE_ROWS: usize = 1 << 14;
/// Of values that are not there, the share that bloom filters do not deny.
const FALSE_POSITIVES: f64 = 0.01;

/// What pages are compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Nothing.
    None,
    /// Snappy.
    Snappy,
    /// LZ4, without a frame.
    Lz4,
    /// Zstandard, at its level 3 if none is told.
    Zstd,
    /// Gzip, at its level 6 if none is told.
    Gzip,
    /// Brotli, at its level 1 if none is told.
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

    /// The levels that it has.
    pub const fn levels(self) -> Option<RangeInclusive<i32>> {
        match self {
            Self::None | Self::Snappy | Self::Lz4 => None,
            Self::Zstd => Some(1..=22),
            Self::Gzip => Some(0..=9),
            Self::Brotli => Some(0..=11),
        }
    }

    fn compression(self, level: Option<i32>) -> Result<Compression> {
        let unsigned = |usual| level.map_or(usual, i32::unsigned_abs);
        Ok(match self {
            Self::None => Compression::UNCOMPRESSED,
            Self::Snappy => Compression::SNAPPY,
            Self::Lz4 => Compression::LZ4_RAW,
            Self::Zstd => Compression::ZSTD(ZstdLevel::try_new(level.unwrap_or(3))?),
            Self::Gzip => Compression::GZIP(GzipLevel::try_new(unsigned(6))?),
            Self::Brotli => Compression::BROTLI(BrotliLevel::try_new(unsigned(1))?),
        })
    }
}

/// A Parquet file that is being written.
pub struct ParquetWriter<W: Write + Send> {
    schema: Arc<Type>,
    leaves: Vec<Leaf>,
    codec: Codec,
    level: Option<i32>,
    filtered: Vec<bool>,
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
    /// Begins a file of single values that may be NULL, of any kind but `Other`.
    pub fn new(out: W, fields: &[Field], codec: Codec) -> Result<Self> {
        let columns = fields.iter().map(|field| (field.name.clone(), Written::Value(field.kind)));
        Self::of(out, &columns.collect::<Vec<_>>(), codec)
    }

    /// Begins a file of columns with these names.
    pub fn of(out: W, columns: &[(String, Written)], codec: Codec) -> Result<Self> {
        let (mut parts, mut leaves) = (Vec::new(), Vec::new());
        for (at, (name, shape)) in columns.iter().enumerate() {
            parts.push(Arc::new(shape.schema(name)?));
            shape.leaves(at, std::slice::from_ref(name), name, &mut leaves);
        }
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(parts).build()?);
        let state = State::Begun(out);
        Ok(Self { schema, leaves, codec, level: None, filtered: Vec::new(), state })
    }

    /// Its columns of single values, in the order in which they are written.
    pub fn leaves(&self) -> impl Iterator<Item = &Field> {
        self.leaves.iter().map(|leaf| &leaf.field)
    }

    /// Compresses at this level, one of those that the codec has. Before the first row.
    pub const fn set_level(&mut self, level: i32) {
        self.level = Some(level);
    }

    /// Which columns get bloom filters. None do where nothing is said. Before the first row.
    pub fn set_filters(&mut self, filtered: Vec<bool>) {
        self.filtered = filtered;
    }

    /// The file, opened with what the first rows say of its columns.
    fn open<'a>(&mut self, first: impl Iterator<Item = &'a Vector>) -> Result<SerializedFileWriter<W>> {
        match std::mem::replace(&mut self.state, State::Lost) {
            State::Open(file) => Ok(file),
            State::Begun(out) => {
                let mut properties = WriterProperties::builder()
                    .set_compression(self.codec.compression(self.level)?)
                    .set_data_page_row_count_limit(PAGE_ROWS)
                    .set_created_by(format!("colonnade {}", env!("CARGO_PKG_VERSION")));
                for (Leaf { column: at, path, .. }, column) in self.leaves.iter().zip(first) {
                    let is_filtered = self.filtered.get(*at).is_some_and(|is_filtered| *is_filtered);
                    if is_filtered && column.logical != LogicalType::Bool {
                        properties = properties
                            .set_column_bloom_filter_fpp(path.clone(), FALSE_POSITIVES)
                            .set_column_bloom_filter_max_ndv(path.clone(), column.len().max(1) as u64);
                    }
                    properties = properties.set_column_dictionary_enabled(path.clone(), repeats(column));
                }
                let (schema, properties) = (Arc::clone(&self.schema), Arc::new(properties.build()));
                Ok(SerializedFileWriter::new(out, schema, properties)?)
            }
            State::Lost => Err(Error::Malformed("an earlier write has failed".into())),
        }
    }

    /// Writes rows as a row group: a flat vector for each column of single values, of its kind.
    pub fn write(&mut self, columns: &[Vector]) -> Result<()> {
        self.put(columns.iter(), |column| (column, None))
    }

    /// Writes rows as a row group: the entries of each of `leaves`. Only those of lists and structs have
    /// levels.
    pub fn write_shredded(&mut self, columns: &[Shredded]) -> Result<()> {
        self.put(columns.iter(), |column| (&column.values, column.levels()))
    }

    fn put<'a, T: 'a>(
        &mut self,
        columns: impl Iterator<Item = &'a T> + Clone,
        parts: impl Fn(&'a T) -> (&'a Vector, Option<[&'a [i16]; 2]>),
    ) -> Result<()> {
        let mut file = self.open(columns.clone().map(|column| parts(column).0))?;
        let mut group = file.next_row_group()?;
        for (column, leaf) in columns.zip(&self.leaves) {
            let Some(mut writer) = group.next_column()? else { break };
            let (values, levels) = parts(column);
            stored::write(&mut writer, values, &leaf.field, levels)?;
            writer.close()?;
        }
        group.close()?;
        self.state = State::Open(file);
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W> {
        Ok(self.open(std::iter::empty())?.into_inner()?)
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

#[cfg(test)]
mod tests {
    use super::{Codec, ParquetWriter};
    use crate::parquet::ParquetReader;
    use crate::{Field, FieldKind, Unit};
    use vector::{LogicalType, Values, Vector, VectorBuilder};

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

    /// The values, told one by one.
    fn shown(column: &Vector) -> Vec<Option<String>> {
        let value = |row: usize| match &column.values {
            Values::Numeric(all) => format!("{} {}", all.ints.get(row), all.scale),
            Values::Int64(all) => all[row].to_string(),
            Values::Float64(all) => all[row].to_string(),
            Values::Bool(all) => all.get(row).to_string(),
            Values::Bytes(all) => format!("{:?}", all.get(row)),
            Values::Fixed(all) => format!("{:?}", all.get(row)),
            other => format!("{other:?}"),
        };
        (0..column.len()).map(|row| column.is_valid(row).then(|| value(row))).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let decimal = |precision, scale| FieldKind::Decimal { precision, scale };
        let moment = |unit, is_instant| FieldKind::Timestamp { unit, is_instant };
        let kinds = [
            FieldKind::INTEGER,
            FieldKind::Integer { bits: 32 },
            FieldKind::Integer { bits: 16 },
            FieldKind::REAL,
            FieldKind::Real { bits: 32 },
            FieldKind::Text,
            FieldKind::Bytes,
            FieldKind::Bool,
            FieldKind::Unsigned,
            FieldKind::Date,
            FieldKind::Time(Unit::Micros),
            moment(Unit::Micros, true),
            moment(Unit::Nanos, false),
            decimal(9, 2),
            decimal(18, 0),
            decimal(38, 10),
            FieldKind::Uuid,
        ];
        let fields = kinds.iter().enumerate();
        let fields: Vec<Field> = fields.map(|(at, &kind)| Field { name: format!("c.{at}"), kind }).collect();
        let group = |rows| -> Vec<Vector> {
            let of = |&kind: &FieldKind| match kind {
                FieldKind::Real { .. } => {
                    column(LogicalType::Float64, rows, |to, row| to.push_f64(f64::from(row % 9) / 8.0))
                }
                FieldKind::Text => column(LogicalType::Text, rows, |to, row| {
                    to.push_bytes(format!("text {}", row % 11).as_bytes())
                }),
                FieldKind::Bytes => {
                    column(LogicalType::Bytes, rows, |to, row| to.push_bytes(&row.to_le_bytes()))
                }
                FieldKind::Bool => column(LogicalType::Bool, rows, |to, row| to.push_bool(row % 2 == 0)),
                FieldKind::Unsigned => {
                    column(LogicalType::UInt64, rows, |to, row| to.push_i64(i64::from(row)))
                }
                FieldKind::Decimal { scale, .. } => column(LogicalType::Numeric, rows, |to, row| {
                    to.push_numeric(i128::from(row) * 10 - 55, scale, scale)
                }),
                FieldKind::Uuid => {
                    column(LogicalType::Uuid, rows, |to, row| to.push_bytes(&u128::from(row).to_be_bytes()))
                }
                _ => column(LogicalType::Int64, rows, |to, row| to.push_i64(i64::from(row) * 7919 - 5)),
            };
            kinds.iter().map(of).collect()
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
                        assert_eq!(found.logical, written.logical);
                        assert_eq!(shown(&found), shown(&written), "{name}, {rows} rows");
                    }
                }
                assert!(reader.next(77).unwrap().is_none());
            }
        }
        std::fs::remove_file(path).unwrap();
    }
}
