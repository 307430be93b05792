//! Row groups of Parquet files, decoded by code of ours, beside the crate's own readers: pages of both
//! versions, dictionaries that overflow into plain pages, NULLs, chunks in any order. What statistics, page
//! indexes and filters leave out, beside a look at every row.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::Cell;
use std::ops::Range;

use std::sync::Arc;

use files::Field;
use files::column::Ranges;
use files::parquet::{ParquetFile, ParquetReader, RowGroup, TableColumns, Wanted, columns, to_column};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use stripe::{OpenStripe, Prune, StripeBytes, prune_chunk, prune_opened};
use vector::{CompareOp, Predicate, Scalar, Selection, Values, Vector, concat};

const SCHEMA: &str = "message rows {
    REQUIRED INT32 i; OPTIONAL INT32 j; OPTIONAL INT32 d (DATE); REQUIRED INT64 k; OPTIONAL INT64 n (DECIMAL(15,2));
    OPTIONAL INT64 u (INTEGER(64,false)); OPTIONAL FLOAT f; OPTIONAL DOUBLE g; OPTIONAL BYTE_ARRAY t (STRING); REQUIRED BYTE_ARRAY b;
    OPTIONAL FIXED_LEN_BYTE_ARRAY(16) x (DECIMAL(30,4)); OPTIONAL FIXED_LEN_BYTE_ARRAY(16) y (UUID); OPTIONAL INT64 s (TIMESTAMP(MILLIS,true));
    OPTIONAL BYTE_ARRAY z (DECIMAL(9,1)); OPTIONAL group e { REQUIRED INT32 inner; }
}";
const GROUPS: [usize; 4] = [40_000, 1, 17_000, 16_384];

/// A number that depends on the row, without a pattern that a page could follow.
fn noise(row: usize, salt: u64) -> u64 {
    let mut word = (row as u64 ^ salt << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^= word >> 29;
    word.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

/// Writes a column whose values `make` gives, of which one in seven is NULL, and a stretch of NULLs and one
/// without.
fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    rows: usize,
    salt: u64,
    make: impl Fn(u64) -> T::T,
) {
    let mut writer = group.next_column().unwrap().unwrap();
    let is_null = |row: usize| match row {
        2000..=22_000 => false,
        25_000..=33_000 => true,
        _ => noise(row, salt + 100).is_multiple_of(7),
    };
    let typed = writer.typed::<T>();
    let optional = typed.get_descriptor().max_def_level();
    let value = |row: usize| make(noise(row, salt));
    if optional == 0 {
        typed.write_batch(&(0..rows).map(value).collect::<Vec<_>>(), None, None).unwrap();
    } else {
        let levels: Vec<i16> = (0..rows).map(|row| if is_null(row) { 0 } else { optional }).collect();
        let values: Vec<_> = (0..rows).filter(|row| !is_null(*row)).map(value).collect();
        typed.write_batch(&values, Some(&levels), None).unwrap();
    }
    writer.close().unwrap();
}

fn written(properties: WriterProperties) -> Vec<u8> {
    let mut out = Vec::new();
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::new(properties)).unwrap();
    for (number, rows) in GROUPS.into_iter().enumerate() {
        let mut group = writer.next_row_group().unwrap();
        let salt = number as u64 * 50;
        let fixed = |bytes: [u8; 16]| FixedLenByteArray::from(bytes.to_vec());
        put::<Int32Type>(&mut group, rows, salt, |word| word as i32);
        put::<Int32Type>(&mut group, rows, salt + 1, |word| (word % 50) as i32 - 25);
        put::<Int32Type>(&mut group, rows, salt + 2, |word| (word % 20_000) as i32);
        put::<Int64Type>(&mut group, rows, salt + 3, |word| word as i64 - (1 << 42));
        put::<Int64Type>(&mut group, rows, salt + 4, |word| (word % 3_000) as i64);
        put::<Int64Type>(&mut group, rows, salt + 5, |word| (word << 21) as i64);
        put::<FloatType>(&mut group, rows, salt + 6, |word| word as f32 / 7.0);
        put::<DoubleType>(
            &mut group,
            rows,
            salt + 7,
            |word| if word % 9 == 0 { f64::NAN } else { word as f64 },
        );
        put::<ByteArrayType>(&mut group, rows, salt + 8, |word| {
            ByteArray::from(
                ["", "short", "ü€😀", "a text that is longer than a view has room for"][word as usize % 4],
            )
        });
        put::<ByteArrayType>(&mut group, rows, salt + 9, |word| {
            ByteArray::from(vec![word as u8; word as usize % 40])
        });
        put::<FixedLenByteArrayType>(&mut group, rows, salt + 10, |word| {
            fixed((word as i128 - (1 << 43)).to_be_bytes())
        });
        put::<FixedLenByteArrayType>(&mut group, rows, salt + 11, |word| {
            fixed(u128::from(word).to_be_bytes())
        });
        put::<Int64Type>(&mut group, rows, salt + 12, |word| word as i64);
        put::<ByteArrayType>(&mut group, rows, salt + 13, |word| {
            ByteArray::from(((word % 999) as i16).to_be_bytes().to_vec())
        });
        put::<Int32Type>(&mut group, rows, salt + 14, |word| (word % 5) as i32);
        group.close().unwrap();
    }
    writer.close().unwrap();
    out
}

/// A file, and how many bytes of it were read.
struct InMemory {
    file: Vec<u8>,
    read: Cell<u64>,
}

impl InMemory {
    fn new(file: Vec<u8>) -> Self {
        Self { file, read: Cell::new(0) }
    }
}

impl StripeBytes for InMemory {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> vector::Result<()> {
        self.read.set(self.read.get() + range.end - range.start);
        Ranges::read(&self.file, range, out).map_err(|problem| vector::Error::corrupt(problem.to_string()))
    }
}

/// All columns of a file.
fn all_of(file: &ParquetFile) -> TableColumns {
    let columns = columns(file.fields()).unwrap();
    let wanted = columns.iter().map(|column| Some(Wanted { column, otherwise: None }));
    file.table(wanted.collect()).unwrap()
}

/// A value of a flat vector.
fn scalar(vector: &Vector, row: usize) -> Scalar {
    if !vector.is_valid(row) {
        return Scalar::Null;
    }
    match &vector.values {
        Values::Bool(bits) => Scalar::Bool(bits.get(row)),
        Values::Int16(values) => Scalar::Int(values[row].into()),
        Values::Int32(values) => Scalar::Int(values[row].into()),
        Values::Int64(values) => Scalar::Int(values[row]),
        Values::Float32(values) => Scalar::Float(values[row].into()),
        Values::Float64(values) => Scalar::Float(values[row]),
        Values::Fixed(values) => Scalar::Bytes(values.get(row).into()),
        Values::Bytes(values) => Scalar::Bytes(values.get(row).into()),
        Values::Numeric(values) => Scalar::Numeric { unscaled: values.ints.get(row), scale: values.scale },
        other => panic!("{other:?} is not flat"),
    }
}

/// All rows of each row group by the crate's readers.
fn expected(bytes: &[u8], fields: &[Field]) -> Vec<Vec<Vector>> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let mut reader = ParquetReader::open(file.path()).unwrap();
    let groups = GROUPS.iter().map(|rows| {
        let read = reader.next(*rows).unwrap().unwrap();
        read.into_iter().zip(fields).map(|(values, field)| to_column(values, field.kind).unwrap()).collect()
    });
    groups.collect()
}

/// The rows of a vector as bits and bytes.
fn shown(vector: &Vector) -> Vec<Option<Vec<u8>>> {
    let flat = concat(vector.logical, vec![vector.clone()]).unwrap();
    let value = |row: usize| match &flat.values {
        Values::Bool(bits) => vec![u8::from(bits.get(row))],
        Values::Int16(values) => values[row].to_le_bytes().to_vec(),
        Values::Int32(values) => values[row].to_le_bytes().to_vec(),
        Values::Int64(values) => values[row].to_le_bytes().to_vec(),
        Values::Float32(values) => values[row].to_le_bytes().to_vec(),
        Values::Float64(values) => values[row].to_le_bytes().to_vec(),
        Values::Fixed(values) => values.get(row).to_vec(),
        Values::Bytes(values) => values.get(row).to_vec(),
        Values::Numeric(values) => {
            [values.ints.get(row).to_le_bytes().as_slice(), &values.scale.to_le_bytes()].concat()
        }
        other => panic!("{other:?} is not flat"),
    };
    (0..flat.len()).map(|row| flat.is_valid(row).then(|| value(row))).collect()
}

#[test]
fn row_groups_are_what_the_crate_reads() {
    let dictionaries = [(true, 1 << 20), (true, 3_000), (false, 0)];
    for (version, compression) in [
        (WriterVersion::PARQUET_1_0, Compression::SNAPPY),
        (WriterVersion::PARQUET_2_0, Compression::UNCOMPRESSED),
    ] {
        for (has_dictionary, limit) in dictionaries {
            let properties = WriterProperties::builder()
                .set_writer_version(version)
                .set_compression(compression)
                .set_dictionary_enabled(has_dictionary)
                .set_dictionary_page_size_limit(limit.max(1))
                .set_data_page_row_count_limit(3_000)
                .set_write_batch_size(500);
            let properties = match has_dictionary {
                true => properties,
                false => properties.set_encoding(Encoding::PLAIN),
            };
            let bytes = written(properties.build());
            let file = ParquetFile::open(&bytes).unwrap();
            let table = all_of(&file);
            let expected = expected(&bytes, file.fields());
            let source = InMemory::new(bytes);
            for (group, expected) in expected.iter().enumerate() {
                let place = format!("{version:?}, dictionary {has_dictionary} {limit}, group {group}");
                let open = RowGroup::open(&file, "rows", group, &table).unwrap();
                // In turn, from the end, and some of them.
                let chunks = open.chunk_count();
                for order in [
                    (0..chunks).collect::<Vec<_>>(),
                    (0..chunks).rev().collect(),
                    (1..chunks).step_by(2).collect(),
                ] {
                    for (column, expected) in expected.iter().enumerate() {
                        for &chunk in &order {
                            let rows = open.chunk_rows(chunk);
                            let read = open.read_chunk(column, chunk, &source, &encodings::NoPglz).unwrap();
                            let got = read.decode(&encodings::NoPglz).unwrap();
                            let wanted = expected.slice(rows.start as usize, rows.len());
                            let place = format!("{place}, column {column}, chunk {chunk}");
                            assert_eq!(got.logical, wanted.logical, "{place}");
                            assert!(shown(&got) == shown(&wanted), "{place}");
                            if let Some(known) = open.statistics(column, chunk, &source).unwrap() {
                                let nulls = (0..wanted.len()).any(|row| !wanted.is_valid(row));
                                assert!(known.null_count > 0 || !nulls, "{place}");
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What rows a predicate keeps, and what is said of them before they are read.
fn holds(verdict: Prune, kept: usize, rows: usize) -> bool {
    match verdict {
        Prune::NoRow => kept == 0,
        Prune::AllRows => kept == rows,
        Prune::SomeRows => true,
    }
}

#[test]
fn what_is_left_out_has_no_row() {
    for has_dictionary in [true, false] {
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(has_dictionary)
            .set_data_page_row_count_limit(3_000)
            .set_write_batch_size(500)
            .set_bloom_filter_enabled(true)
            .set_bloom_filter_fpp(0.01);
        let bytes = written(properties.build());
        let file = ParquetFile::open(&bytes).unwrap();
        let table = all_of(&file);
        let expected = expected(&bytes, file.fields());
        let source = InMemory::new(bytes);
        let mut denied = vec![0; expected[0].len()];
        for (group, columns) in expected.iter().enumerate() {
            let open = RowGroup::open(&file, "rows", group, &table).unwrap();
            assert!(open.has_stripe_filters());
            for (column, values) in columns.iter().enumerate() {
                let ops = [CompareOp::Equal, CompareOp::Less, CompareOp::GreaterOrEqual, CompareOp::NotEqual];
                // Values of the group, and of another.
                let other = &expected[(group + 2) % expected.len()][column];
                let own = (0..values.len()).step_by(1_201).map(|row| scalar(values, row));
                let others = (0..other.len()).step_by(3_301).map(|row| scalar(other, row));
                for value in own.chain(others).filter(|value| !value.is_null()) {
                    for op in ops {
                        let predicate = Predicate::Compare { column, op, value: value.clone() };
                        let mut all = 0;
                        for chunk in 0..open.chunk_count() {
                            let rows = open.chunk_rows(chunk);
                            let part = values.slice(rows.start as usize, rows.len());
                            let mut kept = Selection::All(rows.len() as u32);
                            encodings::filter_vector(&part, &predicate, &mut kept).unwrap();
                            all += kept.len();
                            let verdict = prune_chunk(&open, chunk, &predicate, &source).unwrap();
                            let place =
                                format!("group {group}, column {column}, chunk {chunk}: {predicate:?}");
                            assert!(holds(verdict, kept.len(), rows.len()), "{verdict:?} of {place}");
                        }
                        let verdict = prune_opened(&open, &predicate, &source).unwrap();
                        let place = format!("group {group}, column {column}: {predicate:?}");
                        assert!(holds(verdict, all, values.len()), "{verdict:?} of {place}");
                        denied[column] += u32::from(verdict == Prune::NoRow && op == CompareOp::Equal);
                    }
                }
            }
        }
        // Columns of values that hardly come twice. Of the others another group has the same ones, or the
        // decimals vary in length.
        for (column, denied) in denied.into_iter().enumerate() {
            let random = [0, 3, 5, 7, 10, 11, 12].contains(&column);
            assert!(!random || denied > 15, "column {column}: {denied} values were denied");
        }
    }
}

/// A file of one row group: `a` ascends with a NULL in ten rows, `b` is text as long as a page allows.
fn sorted(rows: i64) -> Vec<u8> {
    let mut out = Vec::new();
    let schema = "message rows { OPTIONAL INT64 a; REQUIRED BYTE_ARRAY b (STRING); }";
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(5_000)
        .set_write_batch_size(1_000);
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::new(properties.build())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let levels: Vec<i16> = (0..rows).map(|row| i16::from(row % 10 != 0)).collect();
    let values: Vec<i64> = (0..rows).filter(|row| row % 10 != 0).collect();
    column.typed::<Int64Type>().write_batch(&values, Some(&levels), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let texts: Vec<_> = (0..rows).map(|row| ByteArray::from(format!("{row:0100}").as_str())).collect();
    column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    out
}

#[test]
fn pages_without_wanted_rows_are_not_read() {
    let rows = 200_000;
    let source = InMemory::new(sorted(rows));
    let file = ParquetFile::open(&source.file).unwrap();
    let open = RowGroup::open(&file, "rows", 0, &all_of(&file)).unwrap();
    let predicate = Predicate::Compare { column: 0, op: CompareOp::Equal, value: Scalar::Int(150_001) };
    let left = |chunk: &u32| prune_chunk(&open, *chunk, &predicate, &source).unwrap() != Prune::NoRow;
    let left: Vec<u32> = (0..open.chunk_count()).filter(left).collect();
    assert_eq!(left, [9], "chunks that have some rows of the page of row 150,001");
    assert!(source.read.get() < 5_000, "{} bytes of indexes", source.read.get());
    let chunk = open.read_chunk(1, 9, &source, &encodings::NoPglz).unwrap();
    let values = chunk.decode(&encodings::NoPglz).unwrap();
    assert_eq!(scalar(&values.flatten(), 0), Scalar::Bytes(format!("{:0100}", 9 << 14).as_bytes().into()));
    let (read, all) = (source.read.get(), source.file.len() as u64);
    assert!(read < all / 8, "{read} of {all} bytes");
    // Who goes on, in the end has read all.
    for chunk in (0..open.chunk_count()).rev().chain(0..open.chunk_count()) {
        let read = open.read_chunk(1, chunk, &source, &encodings::NoPglz).unwrap();
        let first = read.take(&[0], &encodings::NoPglz).unwrap();
        let expected = format!("{:0100}", open.chunk_rows(chunk).start);
        assert_eq!(scalar(&first.flatten(), 0), Scalar::Bytes(expected.as_bytes().into()));
    }
    assert!(source.read.get() < all, "no page is read twice");
}

#[test]
fn spoiled_indexes_are_left_out_or_errors() {
    let whole = sorted(60_000);
    let metadata = parquet::file::metadata::ParquetMetaDataReader::new();
    let metadata = metadata.parse_and_finish(&bytes::Bytes::from(whole.clone())).unwrap();
    let column = metadata.row_group(0).column(0);
    let (places, bounds) = (column.offset_index_range().unwrap(), column.column_index_range().unwrap());
    let mut told = 0;
    for at in places.chain(bounds) {
        let mut spoiled = whole.clone();
        spoiled[at as usize] ^= 1 << (at % 8);
        let source = InMemory::new(spoiled);
        let file = ParquetFile::open(&source.file).unwrap();
        let open = RowGroup::open(&file, "rows", 0, &all_of(&file)).unwrap();
        // Whoever begins at the end trusts the index about the pages before.
        for chunk in (0..open.chunk_count()).rev() {
            open.statistics(0, chunk, &source).unwrap();
            let decoded = open.read_chunk(0, chunk, &source, &encodings::NoPglz).unwrap();
            let Ok(values) = decoded.decode(&encodings::NoPglz) else {
                told += 1;
                continue;
            };
            let values = values.flatten();
            let first = i64::from(open.chunk_rows(chunk).start);
            let is_right = |row: usize| match first + row as i64 {
                value if value % 10 == 0 => !values.is_valid(row),
                value => scalar(&values, row) == Scalar::Int(value),
            };
            assert!((0..values.len()).all(is_right), "byte {at}, chunk {chunk}");
        }
    }
    assert!(told > 0, "an index that names other rows than its pages have");
}
