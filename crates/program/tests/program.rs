//! The program, as it is called.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::{Folder, complaint, printed, run};

fn rows(range: std::ops::Range<u32>) -> String {
    let row = |n: u32| {
        let word = if n.is_multiple_of(7) { String::new() } else { format!("\"w, {}\"", n % 13) };
        format!("{n},{word},{}\n", f64::from(n) / 4.0)
    };
    range.map(row).collect()
}

#[test]
fn csv_becomes_a_column_file_and_csv_again() {
    let Folder(folder) = &Folder::new("csv");
    let text = format!("id,word,ratio\n{}", rows(1..5001));
    fs::write(folder.join("a.csv"), &text).unwrap();
    printed(
        folder,
        &["convert", "a.csv", "a.col", "--stripe-row-count", "2000", "--block-row-count", "1000"],
    );
    assert_eq!(printed(folder, &["print", "a.col"]), text);
    assert_eq!(printed(folder, &["verify", "a.col"]), "5000 rows in 3 stripes: 0 faults\n");
    let shown = printed(folder, &["inspect", "a.col", "--stripes"]);
    assert!(shown.starts_with("5000 rows in 3 stripes, 1 loads, "), "{shown}");
    assert!(
        shown.contains("bigint") && shown.contains("text") && shown.contains("double precision"),
        "{shown}"
    );
    let some = printed(folder, &["print", "a.col", "--columns", "ratio,id", "--limit", "3"]);
    assert_eq!(some, "ratio,id\n0.25,1\n0.5,2\n0.75,3\n");
    // More rows, into the same file.
    fs::write(folder.join("b.csv"), format!("id,word,ratio\n{}", rows(5001..5003))).unwrap();
    printed(folder, &["convert", "b.csv", "a.col", "--append"]);
    assert_eq!(printed(folder, &["print", "a.col"]), format!("{text}{}", rows(5001..5003)));
    // Through Parquet.
    printed(folder, &["convert", "a.col", "a.parquet"]);
    printed(folder, &["convert", "a.parquet", "b.col", "--compression", "lz4"]);
    assert_eq!(printed(folder, &["print", "b.col"]), printed(folder, &["print", "a.col"]));
    printed(folder, &["convert", "b.col", "c.csv"]);
    assert_eq!(fs::read_to_string(folder.join("c.csv")).unwrap(), printed(folder, &["print", "a.parquet"]));
}

#[test]
fn parquet_of_every_kind_comes_back_as_it_was() {
    use files::parquet::{Codec, ParquetReader, ParquetWriter};
    use files::{Field, FieldKind, Unit};
    use vector::{LogicalType, Vector, VectorBuilder};
    let Folder(folder) = &Folder::new("kinds");
    let of = |logical, push: &dyn Fn(&mut VectorBuilder)| -> Vector {
        let mut builder = VectorBuilder::new(logical);
        push(&mut builder);
        builder.push_null();
        builder.finish(&|_, _, _| Box::default())
    };
    let int = |value: i64| move |to: &mut VectorBuilder| assert!(to.push_i64(value));
    let moment = |unit, is_instant| FieldKind::Timestamp { unit, is_instant };
    let all = [
        (FieldKind::Bool, of(LogicalType::Bool, &|to| assert!(to.push_bool(true))), "true"),
        (FieldKind::Unsigned, of(LogicalType::UInt64, &int(i64::MAX)), "18446744073709551615"),
        (FieldKind::Date, of(LogicalType::Int64, &int(19_782)), "2024-02-29"),
        (FieldKind::Time(Unit::Micros), of(LogicalType::Int64, &int(3_600_000_001)), "01:00:00.000001"),
        (moment(Unit::Millis, true), of(LogicalType::Int64, &int(-1)), "1969-12-31 23:59:59.999+00"),
        (moment(Unit::Nanos, false), of(LogicalType::Int64, &int(-1)), "1969-12-31 23:59:59.999999"),
        (
            FieldKind::Decimal { precision: 12, scale: 3 },
            of(LogicalType::Numeric, &|to| assert!(to.push_numeric(-1500, 3, 3))),
            "-1.500",
        ),
        (
            FieldKind::Uuid,
            of(LogicalType::Uuid, &|to| assert!(to.push_bytes(&[0xab; 16]))),
            "abababab-abab-abab-abab-abababababab",
        ),
        (FieldKind::Bytes, of(LogicalType::Bytes, &|to| assert!(to.push_bytes(&[1, 255]))), "\\x01ff"),
        (FieldKind::REAL, of(LogicalType::Float64, &|to| assert!(to.push_f64(f64::NAN))), "NaN"),
    ];
    let fields = all.iter().enumerate();
    let fields: Vec<Field> =
        fields.map(|(at, (kind, ..))| Field { name: format!("c{at}"), kind: *kind }).collect();
    let file = fs::File::create(folder.join("a.parquet")).unwrap();
    let mut writer = ParquetWriter::new(file, &fields, Codec::Snappy).unwrap();
    writer.write(&all.iter().map(|(_, column, _)| column.clone()).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    printed(folder, &["convert", "a.parquet", "a.col"]);
    let line: Vec<&str> = all.iter().map(|(.., text)| *text).collect();
    let text = printed(folder, &["print", "a.col"]);
    assert_eq!(text.lines().nth(1).unwrap(), line.join(","));
    assert_eq!(text.lines().nth(2).unwrap(), ",".repeat(all.len() - 1));
    // Back again: only units change, to microseconds.
    printed(folder, &["convert", "a.col", "b.parquet", "--compression", "none"]);
    let reader = ParquetReader::open(&folder.join("b.parquet")).unwrap();
    let kinds: Vec<FieldKind> = reader.fields().into_iter().map(|field| field.kind).collect();
    let expected = all.iter().map(|(kind, ..)| match *kind {
        FieldKind::Timestamp { is_instant, .. } => moment(Unit::Micros, is_instant),
        other => other,
    });
    assert_eq!(kinds, expected.collect::<Vec<_>>());
    assert_eq!(printed(folder, &["print", "b.parquet"]), text);
}

#[test]
fn values_that_have_no_place_are_refused() {
    use files::parquet::{Codec, ParquetWriter};
    use files::{Field, FieldKind, Unit};
    use vector::{LogicalType, VectorBuilder};
    let Folder(folder) = &Folder::new("refused");
    let instants = FieldKind::Timestamp { unit: Unit::Millis, is_instant: true };
    let cases = [
        (FieldKind::Time(Unit::Micros), -1, "a value of -1"),
        (FieldKind::Time(Unit::Micros), 86_400_000_001, "a value of 86400000001"),
        (instants, i64::MAX / 500, "past those of its type"),
        // What stands for no end of time.
        (FieldKind::Date, i64::from(i32::MIN) + 10_957, "past those of its type"),
    ];
    for (kind, value, told) in cases {
        let mut builder = VectorBuilder::new(LogicalType::Int64);
        assert!(builder.push_i64(value));
        let fields = [Field { name: "c".into(), kind }];
        let file = fs::File::create(folder.join("a.parquet")).unwrap();
        let mut writer = ParquetWriter::new(file, &fields, Codec::None).unwrap();
        writer.write(&[builder.finish(&|_, _, _| Box::default())]).unwrap();
        writer.finish().unwrap();
        let (code, text) = complaint(folder, &["convert", "a.parquet", "a.col"]);
        assert!(
            code == 2 && text.contains("column c: ") && text.contains(told),
            "{kind:?} {value}: {code}, {text}"
        );
    }
    for bytes in [&b"a,b\n1,\xff\n"[..], b"a,\xff\n1,2\n", b""] {
        fs::write(folder.join("a.csv"), bytes).unwrap();
        let (code, text) = complaint(folder, &["convert", "a.csv", "a.col"]);
        assert!(code == 2 && (text.contains("not UTF-8") || text.contains("no columns")), "{code}, {text}");
        assert!(!folder.join("a.col").exists());
    }
}

#[test]
fn text_in_another_encoding_is_refused() {
    use files::column::{Column, ColumnWriter, WriteOptions};
    use vector::{LogicalType, VectorBuilder};
    let Folder(folder) = &Folder::new("latin1");
    let mut builder = VectorBuilder::new(LogicalType::Text);
    assert!(builder.push_bytes(b"plain"));
    builder.push_null();
    assert!(builder.push_bytes(b"s\xfc\xdf"));
    let column =
        Column { number: 1, name: "word".into(), declared: "text".into(), logical: LogicalType::Text };
    let mut writer =
        ColumnWriter::create(&folder.join("a.col"), vec![column], WriteOptions::default()).unwrap();
    writer.write(vec![builder.finish(&|_, _, _| Box::default())]).unwrap();
    writer.finish().unwrap();
    for arguments in
        [&["print", "a.col"][..], &["convert", "a.col", "a.csv"], &["convert", "a.col", "a.parquet"]]
    {
        let (code, text) = complaint(folder, arguments);
        assert!(
            code == 2 && text.contains("column word") && text.contains("not UTF-8"),
            "{arguments:?}: {code}, {text}"
        );
    }
    assert!(!folder.join("a.parquet").exists());
}

#[test]
fn mistakes_are_told_and_leave_nothing_behind() {
    let Folder(folder) = &Folder::new("mistakes");
    fs::write(folder.join("a.csv"), "a,b\n1,2\n").unwrap();
    fs::write(folder.join("bad.csv"), "a,b\n1,2\n3\n").unwrap();
    let says = |arguments: &[&str], part: &str| {
        let (code, text) = complaint(folder, arguments);
        assert!(code == 2 && text.contains(part), "{arguments:?}: {code}, {text}");
    };
    says(&["inspect", "none.col"], "colonnade: none.col: No such file");
    says(&["inspect", "a.csv"], "a.csv: it is no column file");
    says(&["convert", "bad.csv", "bad.col"], "record 3 has 1 fields where the first has 2");
    assert!(!folder.join("bad.col").exists());
    printed(folder, &["convert", "a.csv", "a.col"]);
    says(&["convert", "a.csv", "a.col"], "a.col: it is there already");
    says(&["print", "a.col", "--columns", "c"], "there is no column c");
    says(&["convert", "a.csv", "a.parquet", "--append"], "column files only");
    fs::write(folder.join("other.csv"), "a\nx\n").unwrap();
    says(&["convert", "other.csv", "a.col", "--append"], "its columns are not those");
    assert_eq!(printed(folder, &["print", "a.col"]), "a,b\n1,2\n");
    // An error of what is made names both files.
    let (_, text) = complaint(folder, &["convert", "a.csv", "nowhere/a.col"]);
    assert!(text.starts_with("colonnade: a.csv to nowhere/a.col: No such file"), "{text}");
    // A bit that has turned.
    let mut bytes = fs::read(folder.join("a.col")).unwrap();
    bytes[4100] ^= 1;
    fs::write(folder.join("a.col"), bytes).unwrap();
    let output = run(folder, &["verify", "a.col"]);
    assert_ne!(output.status.code(), Some(0));
    assert_ne!(run(folder, &["print", "a.col"]).status.code(), Some(0));
}
