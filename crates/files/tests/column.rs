//! Column files: loads one after the other, loads that do not end, and damaged bytes.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use files::column::{
    Column, ColumnFile, ColumnWriter, Ranges, TableColumns, TableStripe, WriteOptions, within,
};
use stripe::{OpenStripe, StripeBytes};
use vector::{LogicalType, Values, Vector, VectorBuilder};

/// A file's name that nobody else has, taken away at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("colonnade-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn columns() -> Vec<Column> {
    let of = |number, name: &str, declared: &str, logical| Column {
        number,
        name: name.into(),
        declared: declared.into(),
        logical,
    };
    vec![
        of(1, "id", "bigint", LogicalType::Int64),
        of(3, "name", "text", LogicalType::Text),
        of(4, "price", "numeric(10,2)", LogicalType::Numeric),
        of(7, "at", "timestamp with time zone", LogicalType::Timestamp),
        of(8, "flag", "boolean", LogicalType::Bool),
    ]
}

/// The rows from `first` on.
fn rows(first: i64, count: i64) -> Vec<Vector> {
    let build = |logical, push: &dyn Fn(&mut VectorBuilder, i64) -> bool| {
        let mut builder = VectorBuilder::new(logical);
        for row in first..first + count {
            match row % 11 {
                5 if logical != LogicalType::Int64 => builder.push_null(),
                _ => assert!(push(&mut builder, row)),
            }
        }
        builder.finish(&|_, _, _| Box::default())
    };
    vec![
        build(LogicalType::Int64, &|to, row| to.push_i64(row)),
        build(LogicalType::Text, &|to, row| to.push_bytes(format!("name {}", row % 97).as_bytes())),
        build(LogicalType::Numeric, &|to, row| to.push_numeric(i128::from(row) * 25, 2, 2)),
        build(LogicalType::Timestamp, &|to, row| to.push_i64(row * 1_000_003)),
        build(LogicalType::Bool, &|to, row| to.push_bool(row % 3 == 0)),
    ]
}

fn options() -> WriteOptions {
    WriteOptions { stripe_rows: 1000, chunk_rows: 300, ..WriteOptions::default() }
}

fn load(mut writer: ColumnWriter, first: i64, count: i64) -> u64 {
    for start in (first..first + count).step_by(250) {
        writer.write(rows(start, 250.min(first + count - start))).unwrap();
    }
    let loaded = writer.finish().unwrap();
    assert_eq!(loaded.rows, count as u64);
    loaded.bytes
}

/// Values as text, NULL as None.
fn shown(column: &Vector) -> Vec<Option<String>> {
    let value = |row: usize| match &column.values {
        Values::Int64(values) => values[row].to_string(),
        Values::Bool(values) => values.get(row).to_string(),
        Values::Bytes(values) => String::from_utf8_lossy(values.get(row)).into_owned(),
        Values::Numeric(values) => format!("{} e-{}", values.ints.get(row), values.scale),
        other => panic!("{other:?}"),
    };
    (0..column.len()).map(|row| column.is_valid(row).then(|| value(row))).collect()
}

/// All that a file gives: the numbers of its rows, having held the other columns against them. None for a
/// file that does not open or read.
fn ids(path: &Path) -> files::Result<Vec<i64>> {
    let file = ColumnFile::open(File::open(path)?)?;
    read(&file)
}

fn read(file: &ColumnFile<File>) -> files::Result<Vec<i64>> {
    let mut found = Vec::new();
    for at in 0..file.stripes().len() {
        let stripe = file.stripe(at)?.unwrap();
        for chunk in 0..stripe.reader().chunk_count() {
            let part = (0..columns().len())
                .map(|column| stripe.read(column, chunk))
                .collect::<files::Result<Vec<_>>>()?;
            let Values::Int64(numbers) = &part[0].values else { panic!("{:?}", part[0]) };
            let expected = rows(numbers[0], numbers.len() as i64);
            for (column, expected) in part.iter().zip(&expected) {
                assert_eq!(shown(column), shown(expected));
            }
            found.extend_from_slice(numbers);
        }
    }
    assert_eq!(found.len() as u64, file.rows());
    Ok(found)
}

#[test]
fn loads_come_one_after_the_other() {
    let path = Scratch::new("loads");
    load(ColumnWriter::create(&path.0, columns(), options()).unwrap(), 0, 2600);
    assert!(ColumnWriter::create(&path.0, columns(), options()).is_err());
    let before = ColumnFile::open(File::open(&path.0).unwrap()).unwrap();
    load(ColumnWriter::append(&path.0, options()).unwrap(), 2600, 1);
    load(ColumnWriter::append(&path.0, options()).unwrap(), 2601, 0);
    let end = load(ColumnWriter::append(&path.0, options()).unwrap(), 2601, 1399);
    assert_eq!(ids(&path.0).unwrap(), (0..4000).collect::<Vec<_>>());
    let file = ColumnFile::open(File::open(&path.0).unwrap()).unwrap();
    assert_eq!((file.loads(), file.length(), file.columns()), (4, end, &columns()[..]));
    assert!(
        (0..file.stripes().len()).all(|at| file.stripe(at).unwrap().unwrap().verify().unwrap().is_empty())
    );
    // Who opened it before still has the rows of then.
    assert_eq!(read(&before).unwrap(), (0..2600).collect::<Vec<_>>());
}

#[test]
fn a_load_that_does_not_end_has_not_happened() {
    let path = Scratch::new("unfinished");
    let mut writer = ColumnWriter::create(&path.0, columns(), options()).unwrap();
    writer.write(rows(0, 900)).unwrap();
    writer.write(rows(900, 900)).unwrap();
    drop(writer);
    assert!(ids(&path.0).unwrap_err().to_string().contains("ever finished"));
    fs::remove_file(&path.0).unwrap();
    load(ColumnWriter::create(&path.0, columns(), options()).unwrap(), 0, 700);
    let whole = fs::read(&path.0).unwrap();
    load(ColumnWriter::append(&path.0, options()).unwrap(), 700, 800);
    let longer = fs::read(&path.0).unwrap();
    // A power loss before the head is written: the old head with any part of what came behind it.
    for length in (whole.len()..longer.len()).step_by(997) {
        let mut torn = longer[..length].to_vec();
        torn[..4096].copy_from_slice(&whole[..4096]);
        fs::write(&path.0, &torn).unwrap();
        assert_eq!(ids(&path.0).unwrap().len(), 700);
        load(ColumnWriter::append(&path.0, options()).unwrap(), 700, 30);
        assert_eq!(ids(&path.0).unwrap(), (0..730).collect::<Vec<_>>());
    }
}

#[test]
fn many_small_loads_stay_quick_to_open() {
    let path = Scratch::new("many");
    load(ColumnWriter::create(&path.0, columns(), options()).unwrap(), 0, 1);
    for row in 1..600 {
        load(ColumnWriter::append(&path.0, options()).unwrap(), row, 1);
    }
    assert_eq!(ids(&path.0).unwrap(), (0..600).collect::<Vec<_>>());
}

#[test]
fn two_loads_wait_for_each_other() {
    let path = Scratch::new("two");
    load(ColumnWriter::create(&path.0, columns(), options()).unwrap(), 0, 10);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..5).for_each(|_| _ = load(ColumnWriter::append(&path.0, options()).unwrap(), 10, 300))
            });
        }
    });
    assert_eq!(ids(&path.0).unwrap().len(), 10 + 20 * 300);
}

#[test]
fn damaged_bytes_are_errors_and_never_other_rows() {
    let path = Scratch::new("damaged");
    load(ColumnWriter::create(&path.0, columns(), options()).unwrap(), 0, 1300);
    load(ColumnWriter::append(&path.0, options()).unwrap(), 1300, 200);
    let whole = fs::read(&path.0).unwrap();
    let expected: Vec<i64> = (0..1500).collect();
    let verified = |path: &Path| -> files::Result<usize> {
        let file = ColumnFile::open(File::open(path)?)?;
        (0..file.stripes().len()).map(|at| Ok(file.stripe(at)?.unwrap().verify()?.len())).sum()
    };
    let head = (0..4096).step_by(13).chain(1024..1060).chain(2048..2084);
    let mut noticed = 0;
    for at in head.chain((4096..whole.len()).step_by(7)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path.0, &bytes).unwrap();
        match ids(&path.0) {
            // The load before, where the newest place in the head is damaged.
            Ok(found) => assert!(found == expected || (at < 4096 && found == expected[..1300]), "byte {at}"),
            Err(_) => noticed += 1,
        }
        if at >= 4096 && ids(&path.0).is_err() {
            assert!(verified(&path.0).map_or(true, |findings| findings > 0), "byte {at} passes verification");
        }
    }
    assert!(noticed > whole.len() / 14, "{noticed} of {}", whole.len());
    for length in (0..whole.len()).step_by(101) {
        fs::write(&path.0, &whole[..length]).unwrap();
        assert!(ids(&path.0).is_err(), "{length} bytes");
    }
    fs::write(&path.0, b"PAR1 and so on").unwrap();
    assert!(ids(&path.0).unwrap_err().to_string().contains("no column file"));
}

#[test]
fn a_damaged_place_in_the_head_costs_no_load() {
    let path = Scratch::new("place");
    load(ColumnWriter::create(&path.0, columns(), options()).unwrap(), 0, 300);
    load(ColumnWriter::append(&path.0, options()).unwrap(), 300, 400);
    let mut bytes = fs::read(&path.0).unwrap();
    // The second load's place. It reads as of the first, and says so.
    bytes[1024 + 9] ^= 1;
    fs::write(&path.0, &bytes).unwrap();
    let file = ColumnFile::open(File::open(&path.0).unwrap()).unwrap();
    assert_eq!((file.rows(), file.damaged_place()), (300, Some(1024)));
    // Another load would take the room of the second one.
    let refused = ColumnWriter::append(&path.0, options()).unwrap_err().to_string();
    assert!(refused.contains("byte 1024 of the head is damaged"), "{refused}");
    assert_eq!(fs::read(&path.0).unwrap(), bytes);
}

#[test]
fn what_a_file_calls_json_is_looked_at() {
    let Scratch(path) = &Scratch::new("json");
    for (text, is_json) in [("{\"a\": [1, null]}", true), ("{oops", false)] {
        let _ = fs::remove_file(path);
        let column =
            Column { number: 1, name: "j".into(), declared: "json".into(), logical: LogicalType::Bytes };
        let mut writer = ColumnWriter::create(path, vec![column.clone()], WriteOptions::default()).unwrap();
        let mut values = VectorBuilder::new(LogicalType::Bytes);
        assert!(values.push_bytes(text.as_bytes()));
        writer.write(vec![values.finish(&|_, _, _| Box::default())]).unwrap();
        writer.finish().unwrap();
        let file = File::open(path).unwrap();
        let open = ColumnFile::open(file.try_clone().unwrap()).unwrap();
        let columns = TableColumns::find(open.columns(), open.defaults(), &[Some(column)]).unwrap();
        let place = &open.stripes()[0];
        let bytes = Bytes { file, range: place.bytes.clone() };
        let stripe = TableStripe::open(place, &columns, &bytes).unwrap();
        let mut chunk = stripe.read_chunk(0, 0, &bytes, &encodings::NoPglz).unwrap();
        chunk.verify().unwrap();
        let decoded = chunk.decode(&encodings::NoPglz);
        assert_eq!(decoded.is_ok(), is_json, "{text}: {decoded:?}");
    }
}

/// The bytes of a stripe.
struct Bytes {
    file: File,
    range: std::ops::Range<u64>,
}

impl StripeBytes for Bytes {
    fn read(&self, range: std::ops::Range<u64>, out: &mut Vec<u8>) -> vector::Result<()> {
        let place = within(&self.range, &range)?;
        self.file.read(place, out).map_err(|problem| vector::Error::Host(problem.to_string()))
    }
}
