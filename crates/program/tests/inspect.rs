//! What `inspect` tells of files.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::Path;

use common::{Folder, column, complaint, printed, vector, write};
use files::column::{Column, ColumnDefault, ColumnFile, OwnedFile, Owner, StripePlace};
use vector::{LogicalType, Special};

/// The words of the line that a column has in a table.
fn line<'a>(shown: &'a str, name: &str) -> Vec<&'a str> {
    let found = shown.lines().find(|line| line.split_whitespace().next() == Some(name));
    assert!(found.is_some(), "{name}: {shown}");
    found.unwrap_or_default().split_whitespace().collect()
}

#[test]
fn a_column_file_tells_sizes_statistics_and_encodings() {
    let Folder(folder) = &Folder::new("inspect");
    let row = |n: u32| format!("{n},{},word {}\n", if n.is_multiple_of(4) { "" } else { "1.5" }, n % 50);
    let text = (1..5001).map(row).collect::<String>();
    fs::write(folder.join("a.csv"), format!("id,ratio,word\n{text}")).unwrap();
    printed(
        folder,
        &["convert", "a.csv", "a.col", "--stripe-row-count", "2000", "--block-row-count", "1000"],
    );
    let shown = printed(folder, &["inspect", "a.col"]);
    assert!(shown.starts_with("5000 rows in 3 stripes, 1 loads, "), "{shown}");
    assert_eq!(
        line(&shown, "column").join(" "),
        "column type bytes a row NULLs distinct min max codec chunks of each encoding"
    );
    let id = line(&shown, "id");
    assert_eq!((id[1], id[4], &id[6..]), ("bigint", "0", &["1", "5000", "none", "5x", "sequence"][..]));
    // Two stripes of 2,000 rows. The estimate is a little off.
    let distinct: u32 = id[5].strip_suffix('+').unwrap().parse().unwrap();
    assert!((1900..2100).contains(&distinct), "{shown}");
    let ratio = line(&shown, "ratio");
    assert_eq!((ratio[5], ratio[6], &ratio[7..9]), ("1250", "1+", &["1.5", "1.5"][..]));
    assert!(line(&shown, "word").join(" ").contains("word 0 word 9 "), "{shown}");
    assert!(shown.contains("x dictionary > "), "{shown}");
    // Of each stripe.
    let shown = printed(folder, &["inspect", "a.col", "--stripes"]);
    let ids = shown.lines().filter(|line| line.trim_start().starts_with("id ")).collect::<Vec<_>>();
    assert_eq!(ids.len(), 4, "{shown}");
    let last = ids.last().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!((last[6], last[7], last[9]), ("4001", "5000", "1x"), "{shown}");
    assert!(shown.contains("\nstripe 2: 1000 rows, "), "{shown}");
}

#[test]
fn a_codec_is_named_where_it_was_of_use() {
    let Folder(folder) = &Folder::new("inspect-codec");
    let row = |n: u32| format!("{n},{:x} the quick brown fox jumps over the lazy dog {n}\n", n * n);
    fs::write(folder.join("a.csv"), format!("id,words\n{}", (1..9000).map(row).collect::<String>())).unwrap();
    for codec in ["none", "lz4", "zstd"] {
        let name = format!("{codec}.col");
        printed(folder, &["convert", "a.csv", &name, "--compression", codec]);
        let shown = printed(folder, &["inspect", &name]);
        let words = line(&shown, "words");
        assert!(words.contains(&codec), "{codec}: {shown}");
        assert!(line(&shown, "id").contains(&"none"), "{shown}");
    }
}

#[test]
fn odd_values_and_names_are_told() {
    let Folder(folder) = &Folder::new("inspect-odd");
    let columns = vec![
        column(1, "n", "numeric", LogicalType::Numeric),
        column(2, "d", "date", LogicalType::Date),
        column(3, "\u{1b}[2J", "text", LogicalType::Text),
        column(4, "a", "integer[]", LogicalType::Bytes),
        column(5, "void", "integer", LogicalType::Int32),
    ];
    let rows = vec![
        vector(LogicalType::Numeric, |to| {
            assert!(to.push_numeric(-1250, 2, 2));
            assert!(to.push_numeric_side(&Special::Nan.bytes()));
        }),
        vector(LogicalType::Date, |to| assert!(to.push_i32(i32::MIN) && to.push_i32(0))),
        vector(LogicalType::Text, |to| {
            assert!(to.push_bytes("ü".repeat(60).as_bytes()) && to.push_bytes(b"\x07"))
        }),
        vector(LogicalType::Bytes, |to| assert!(to.push_bytes(b"array") && to.push_bytes(b"other"))),
        vector(LogicalType::Int32, |to| (0..2).for_each(|_| to.push_null())),
    ];
    write(&folder.join("a.col"), columns, rows);
    let shown = printed(folder, &["inspect", "a.col"]);
    assert_eq!(line(&shown, "n")[6..8], ["-12.50", "-12.50"], "{shown}");
    assert!(shown.contains("column n: 1 values are NaN, infinite or past 128 bits"), "{shown}");
    assert_eq!(line(&shown, "d")[6..8], ["-infinity", "2000-01-01"], "{shown}");
    assert_eq!(line(&shown, "\\u{1b}[2J")[6..8], ["\\u{7}", &format!("{}…", "ü".repeat(24))], "{shown}");
    assert_eq!(line(&shown, "a")[6..8], ["?", "?"], "{shown}");
    assert_eq!(line(&shown, "void")[4..], ["2", "0", "none", "1x", "null"], "{shown}");
}

/// A file of a server that has the rows of another file, and more columns than those rows.
fn with_more_columns(from: &Path, to: &Path, columns: Vec<Column>, defaults: Vec<ColumnDefault>) {
    let old = ColumnFile::open(fs::File::open(from).unwrap()).unwrap();
    let owner = Owner { storage_id: 7, database: 5, relation: 16_385 };
    let new = OwnedFile::create(&to.into(), owner).unwrap();
    let bytes = fs::read(from).unwrap();
    let (mut places, mut at) = (Vec::new(), 8192);
    for place in old.stripes() {
        let stripe = &bytes[place.bytes.start as usize..place.bytes.end as usize];
        new.put(stripe, at).unwrap();
        places.push(StripePlace { bytes: at..at + stripe.len() as u64, ..place.clone() });
        at += stripe.len() as u64;
    }
    new.name(&new.publish(at, columns, defaults, places).unwrap()).unwrap();
}

#[test]
fn rows_that_are_older_than_a_column_are_told() {
    let Folder(folder) = &Folder::new("inspect-older");
    let id = column(1, "id", "integer", LogicalType::Int32);
    let rows = vector(LogicalType::Int32, |to| (1..4).for_each(|value| assert!(to.push_i32(value))));
    write(&folder.join("a.col"), vec![id.clone()], vec![rows]);
    let new = column(2, "new", "text", LogicalType::Text);
    with_more_columns(&folder.join("a.col"), &folder.join("b.col"), vec![id, new], Vec::new());
    let shown = printed(folder, &["inspect", "b.col"]);
    assert!(shown.contains("a foreign table of PostgreSQL: OID 16385, database 5\n"), "{shown}");
    assert!(shown.contains("column new: 3 rows are older than it"), "{shown}");
    assert_eq!(line(&shown, "new")[2..], ["0", "0.00", "3", "0", "none"], "{shown}");
    assert_eq!(printed(folder, &["print", "b.col"]), "id,new\n1,\n2,\n3,\n");
    assert_eq!(printed(folder, &["verify", "b.col"]), "3 rows in 1 stripes: 0 faults\n");
}

#[test]
fn a_parquet_file_tells_what_its_footer_has() {
    let Folder(folder) = &Folder::new("inspect-parquet");
    let row = |n: u32| format!("{n},{}\n", if n.is_multiple_of(5) { String::new() } else { format!("w{n}") });
    fs::write(folder.join("a.csv"), format!("id,word\n{}", (1..1001).map(row).collect::<String>())).unwrap();
    printed(folder, &["convert", "a.csv", "a.parquet"]);
    let shown = printed(folder, &["inspect", "a.parquet", "--stripes"]);
    assert!(shown.starts_with("1000 rows in 1 row groups, "), "{shown}");
    assert!(shown.contains("\nrow group 0: 1000 rows, "), "{shown}");
    let (id, word) = (line(&shown, "id"), line(&shown, "word"));
    assert_eq!((id[1], id[4], &id[6..9]), ("bigint", "0", &["1", "1000", "zstd"][..]), "{shown}");
    assert_eq!((word[4], &word[6..8]), ("200", &["w1", "w999"][..]), "{shown}");
    assert_eq!(word[8..], ["zstd", "1x", "PLAIN;", "1x", "RLE"], "{shown}");
}

#[test]
fn damage_is_an_error() {
    let Folder(folder) = &Folder::new("inspect-damage");
    fs::write(folder.join("a.csv"), "a\n1\n2\n").unwrap();
    printed(folder, &["convert", "a.csv", "a.col"]);
    let whole = fs::read(folder.join("a.col")).unwrap();
    for at in 4096..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(folder.join("b.col"), bytes).unwrap();
        let output = common::run(folder, &["inspect", "b.col"]);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_told = output.status.code() == Some(2) && said.starts_with("colonnade: b.col: ");
        assert!(output.status.success() || is_told, "byte {at}: {said}");
    }
    let (code, text) = complaint(folder, &["inspect", "a.csv"]);
    assert!(code == 2 && text.contains("it is no column file"), "{text}");
}

#[test]
fn rows_that_are_older_than_a_column_have_its_default() {
    let Folder(folder) = &Folder::new("inspect-defaults");
    let id = column(1, "id", "integer", LogicalType::Int32);
    let rows = vector(LogicalType::Int32, |to| (1..4).for_each(|value| assert!(to.push_i32(value))));
    write(&folder.join("a.col"), vec![id.clone()], vec![rows]);
    // Sign, two digits after the point, weight 0; then 12 and 5000.
    let numeric = [0xa100u16, 12, 5000].iter().flat_map(|word| word.to_le_bytes()).collect();
    // The bytes are those that a server has: words of eight bytes, however wide the type.
    let word = |value: i64| value.to_le_bytes().to_vec();
    let values = [
        ("t", "text", LogicalType::Text, "it's".as_bytes().to_vec(), "it's"),
        ("n", "numeric(9,2)", LogicalType::Numeric, numeric, "-12.50"),
        ("i2", "smallint", LogicalType::Int16, word(-7), "-7"),
        ("i8", "bigint", LogicalType::Int64, word(1 << 40), "1099511627776"),
        ("b", "boolean", LogicalType::Bool, word(1), "true"),
        ("d", "date", LogicalType::Date, word(366), "2001-01-01"),
        ("f", "double precision", LogicalType::Float64, 0.25f64.to_le_bytes().to_vec(), "0.25"),
        ("u", "uuid", LogicalType::Uuid, vec![0x11; 16], "11111111-1111-1111-1111-111111111111"),
        ("e", "text", LogicalType::Text, Vec::new(), "\"\""),
    ];
    let (mut columns, mut defaults) = (vec![id], Vec::new());
    for (number, (name, declared, logical, bytes, _)) in (2..).zip(&values) {
        columns.push(column(number, name, declared, *logical));
        defaults.push((number, bytes.clone()));
    }
    columns.push(column(99, "none", "text", LogicalType::Text));
    with_more_columns(&folder.join("a.col"), &folder.join("b.col"), columns.clone(), defaults.clone());
    let shown: Vec<_> = values.iter().map(|(.., shown)| *shown).collect();
    let shown = shown.join(",");
    let printed_rows = printed(folder, &["print", "b.col"]);
    assert_eq!(
        printed_rows.lines().skip(1).collect::<Vec<_>>(),
        [format!("1,{shown},"), format!("2,{shown},"), format!("3,{shown},")]
    );
    let inspected = printed(folder, &["inspect", "b.col"]);
    assert_eq!(line(&inspected, "i2")[2..8], ["0", "0.00", "0", "1", "-7", "-7"], "{inspected}");
    assert!(inspected.contains("column none: 3 rows are older than it, and NULL"), "{inspected}");
    assert!(!inspected.contains("column t: "), "{inspected}");
    assert_eq!(printed(folder, &["verify", "b.col"]), "3 rows in 1 stripes: 0 faults\n");
    // A copy has them as values.
    printed(folder, &["convert", "b.col", "c.col"]);
    assert_eq!(printed(folder, &["print", "c.col"]), printed_rows);
    // Bytes that are none of the type.
    defaults[2].1.truncate(1);
    with_more_columns(&folder.join("a.col"), &folder.join("d.col"), columns, defaults);
    let told = complaint(folder, &["print", "d.col"]);
    assert!(told.1.contains("the default of column i2 is none of its type"), "{told:?}");
}
