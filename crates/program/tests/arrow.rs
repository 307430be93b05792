//! What `arrow` writes, read by Arrow's own reader. tests/program_arrow.py holds it against pyarrow.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use common::{Folder, column, complaint, printed, run, vector, write};
use vector::{LogicalType, Special, Vector, VectorBuilder};

/// The stream that the program writes.
fn stream(folder: &Path, arguments: &[&str]) -> (SchemaRef, Vec<RecordBatch>) {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let reader = StreamReader::try_new(output.stdout.as_slice(), None).unwrap();
    (reader.schema(), reader.map(|batch| batch.unwrap()).collect())
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

#[test]
fn types_are_those_of_arrow() {
    use LogicalType as L;
    let Folder(folder) = &Folder::new("arrow-types");
    let one = |logical, push: &dyn Fn(&mut VectorBuilder) -> bool| -> Vector {
        vector(logical, |to| {
            assert!(push(to));
            to.push_null();
        })
    };
    let text = |to: &mut VectorBuilder| to.push_bytes(b"{\"a\": 1}");
    let moment = |to: &mut VectorBuilder| to.push_i64(-1);
    let micros = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    let all = [
        ("boolean", one(L::Bool, &|to| to.push_bool(true)), DataType::Boolean),
        ("smallint", one(L::Int16, &|to| to.push_i16(-7)), DataType::Int16),
        ("integer", one(L::Int32, &|to| to.push_i32(-7)), DataType::Int32),
        ("bigint", one(L::Int64, &|to| to.push_i64(-7)), DataType::Int64),
        ("money", one(L::Int64, &|to| to.push_i64(1250)), DataType::Int64),
        ("engine.uint8", one(L::UInt64, &|to| to.push_i64(i64::MAX)), DataType::UInt64),
        ("real", one(L::Float32, &|to| to.push_f32(f32::NAN)), DataType::Float32),
        ("double precision", one(L::Float64, &|to| to.push_f64(f64::INFINITY)), DataType::Float64),
        ("date", one(L::Date, &|to| to.push_i32(0)), DataType::Date32),
        (
            "time without time zone",
            one(L::Int64, &|to| to.push_i64(1)),
            DataType::Time64(TimeUnit::Microsecond),
        ),
        ("timestamp(3) without time zone", one(L::Timestamp, &moment), micros(None)),
        ("timestamp with time zone", one(L::Timestamp, &moment), micros(Some("UTC"))),
        ("uuid", one(L::Uuid, &|to| to.push_bytes(&[7; 16])), DataType::FixedSizeBinary(16)),
        ("numeric(12,3)", one(L::Numeric, &|to| to.push_numeric(-15, 1, 3)), DataType::Decimal128(12, 3)),
        ("numeric", one(L::Numeric, &|to| to.push_numeric(-15, 1, 3)), DataType::Utf8),
        ("json", one(L::Bytes, &text), DataType::Utf8),
        ("character varying(20)", one(L::Text, &text), DataType::Utf8),
        ("bytea", one(L::Bytes, &text), DataType::Binary),
    ];
    let columns = (1..).zip(&all).map(|(number, (declared, values, _))| {
        column(number, &format!("c{number}"), declared, values.logical)
    });
    write(
        &folder.join("a.col"),
        columns.collect(),
        all.iter().map(|(_, values, _)| values.clone()).collect(),
    );
    let (schema, batches) = stream(folder, &["arrow", "a.col"]);
    let types = schema.fields().iter().map(|field| field.data_type());
    assert!(types.eq(all.iter().map(|(.., data_type)| data_type)), "{schema}");
    assert!(schema.fields().iter().all(|field| field.is_nullable()));
    let uuid = schema.field(12).metadata();
    assert_eq!(
        uuid,
        &HashMap::from([
            ("ARROW:extension:name".into(), "arrow.uuid".into()),
            ("ARROW:extension:metadata".into(), String::new())
        ])
    );
    let batch = &batches[0];
    assert_eq!((batches.len(), batch.num_rows()), (1, 2));
    assert!(batch.columns().iter().all(|values| values.is_valid(0) && values.is_null(1)));
    assert_eq!(batch.column(5).as_primitive::<UInt64Type>().value(0), u64::MAX);
    // 2000-01-01, and a microsecond before.
    assert_eq!(batch.column(8).as_primitive::<Date32Type>().value(0), 10_957);
    let instant = batch.column(11).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(instant.value(0), 946_684_799_999_999);
    assert_eq!(batch.column(13).as_primitive::<Decimal128Type>().value(0), -1500);
    assert_eq!(batch.column(14).as_string::<i32>().value(0), "-1.500");
    assert_eq!(batch.column(17).as_binary::<i32>().value(0), b"{\"a\": 1}");
}

#[test]
fn values_that_arrow_has_not_are_refused_by_the_name_of_their_column() {
    use LogicalType as L;
    let Folder(folder) = &Folder::new("arrow-refused");
    let nan = |to: &mut VectorBuilder| assert!(to.push_numeric_side(&Special::Nan.bytes()));
    let infinite = "column x has an infinity, which Arrow has not";
    let cases = [
        ("date", vector(L::Date, |to| assert!(to.push_i32(i32::MAX))), infinite),
        ("timestamp with time zone", vector(L::Timestamp, |to| assert!(to.push_i64(i64::MIN))), infinite),
        (
            "time without time zone",
            vector(L::Int64, |to| assert!(to.push_i64(86_400_000_000))),
            "column x has the time 24:00:00, which Arrow has not",
        ),
        ("numeric(5,2)", vector(L::Numeric, nan), "column x has a value that no decimal(5,2) is, as NaN"),
        (
            "text",
            vector(L::Text, |to| assert!(to.push_bytes(b"\xff"))),
            "column x has text that is not UTF-8",
        ),
        ("jsonb", vector(L::Bytes, |to| assert!(to.push_bytes(b"[]"))), "column x is jsonb, of which"),
    ];
    for (declared, values, told) in cases {
        let path = folder.join("a.col");
        let _ = fs::remove_file(&path);
        let columns = vec![column(1, "x", declared, values.logical), column(2, "y", "integer", L::Int32)];
        write(&path, columns, vec![values, vector(L::Int32, |to| assert!(to.push_i32(1)))]);
        let output = run(folder, &["arrow", "a.col"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(told), "{declared}: {text}");
        // The other column can be had.
        assert_eq!(rows(&stream(folder, &["arrow", "a.col", "--columns", "y"]).1), 1);
    }
    // As text a NaN is no harm.
    fs::remove_file(folder.join("a.col")).unwrap();
    write(&folder.join("a.col"), vec![column(1, "x", "numeric", L::Numeric)], vec![vector(L::Numeric, nan)]);
    let (_, batches) = stream(folder, &["arrow", "a.col"]);
    assert_eq!(batches[0].column(0).as_string::<i32>().value(0), "NaN");
}

#[test]
fn columns_and_rows_are_chosen() {
    let Folder(folder) = &Folder::new("arrow-chosen");
    let row = |n: u32| format!("{n},w{n}\n");
    fs::write(folder.join("a.csv"), format!("id,word\n{}", (0..25_000).map(row).collect::<String>()))
        .unwrap();
    printed(folder, &["convert", "a.csv", "a.col", "--block-row-count", "3000"]);
    printed(folder, &["convert", "a.csv", "a.parquet"]);
    for name in ["a.csv", "a.col", "a.parquet"] {
        let (schema, batches) = stream(folder, &["arrow", name]);
        assert_eq!((schema.fields().len(), rows(&batches)), (2, 25_000), "{name}");
        assert!(batches.len() > 1 && batches.iter().all(|batch| batch.num_rows() <= 10_000), "{name}");
        let (schema, batches) = stream(folder, &["arrow", name, "--columns", "word,id", "--limit", "13000"]);
        let names = schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>();
        assert_eq!((names, rows(&batches)), (vec!["word", "id"], 13_000), "{name}");
        let ids =
            batches.iter().flat_map(|batch| batch.column(1).as_primitive::<Int64Type>().values().to_vec());
        assert!(ids.eq(0..13_000), "{name}");
        assert_eq!(rows(&stream(folder, &["arrow", name, "--limit", "0"]).1), 0, "{name}");
        let (code, text) = complaint(folder, &["arrow", name, "--columns", "none"]);
        assert!(code == 2 && text.contains("there is no column none"), "{text}");
    }
}

#[test]
fn a_file_without_rows_is_a_stream_without_batches() {
    let Folder(folder) = &Folder::new("arrow-empty");
    fs::write(folder.join("a.csv"), "id,word\n").unwrap();
    printed(folder, &["convert", "a.csv", "a.col"]);
    printed(folder, &["convert", "a.col", "a.parquet"]);
    for name in ["a.csv", "a.col", "a.parquet"] {
        let (schema, batches) = stream(folder, &["arrow", name]);
        assert_eq!((schema.fields().len(), batches.len()), (2, 0), "{name}");
    }
}

#[test]
fn large_rows_come_in_smaller_batches() {
    let Folder(folder) = &Folder::new("arrow-large");
    // Long values that compress well: 200 MB in one row group.
    let long = "x".repeat(200_000);
    let texts = vector(LogicalType::Text, |to| {
        (0..1000).for_each(|_| assert!(to.push_bytes(long.as_bytes())));
    });
    let kind = files::FieldKind::Text;
    let fields = [files::Field { name: "t".into(), kind }];
    let file = fs::File::create(folder.join("a.parquet")).unwrap();
    let mut writer = files::parquet::ParquetWriter::new(file, &fields, files::parquet::Codec::Zstd).unwrap();
    writer.write(&[texts]).unwrap();
    writer.finish().unwrap();
    let (_, batches) = stream(folder, &["arrow", "a.parquet"]);
    assert_eq!(rows(&batches), 1000);
    assert!(batches.iter().all(|batch| batch.num_rows() <= 336), "{}", batches.len());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let Folder(folder) = &Folder::new("arrow-pipe");
    let row = |n: u32| format!("{n},{}\n", n.wrapping_mul(2_654_435_769));
    fs::write(folder.join("a.csv"), format!("a,b\n{}", (0..50_000).map(row).collect::<String>())).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_colonnade"));
    program.args(["arrow", "a.csv"]).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
