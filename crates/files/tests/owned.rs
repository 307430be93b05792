//! Files whose stripes a server keeps account of: what others read of them, and when.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, File};

use files::column::{Column, ColumnFile, ColumnWriter, OwnedFile, Owner, StripePlace, WriteOptions};
use stripe::{StripeOptions, write_stripe};
use vector::{LogicalType, VectorBuilder};

const OWNER: Owner = Owner { storage_id: 77, database: 5, relation: 16_384 };

/// Puts a stripe of so many rows past all others. Its columns are left to be looked up.
fn put(file: &OwnedFile, rows: u32, columns: usize) -> StripePlace {
    let column = || {
        let mut builder = VectorBuilder::new(LogicalType::Int64);
        (0..rows).for_each(|row| assert!(builder.push_i64(row.into())));
        builder.finish(&|_, _, _| Box::default())
    };
    let columns: Vec<_> = (0..columns).map(|_| column()).collect();
    let written = write_stripe(rows, &columns, &StripeOptions::default()).unwrap();
    let start = file.length().unwrap().next_multiple_of(8192);
    file.put(&written.bytes, start).unwrap();
    StripePlace {
        bytes: start..start + written.bytes.len() as u64,
        footer: written.footer_offset..written.footer_offset + u64::from(written.footer_length),
        rows,
        summary: written.summary.into(),
        columns: [].into(),
    }
}

fn columns(count: u32) -> Vec<Column> {
    let column = |number| Column {
        number,
        name: format!("c{number}"),
        declared: "bigint".into(),
        logical: LogicalType::Int64,
    };
    (1..=count).map(column).collect()
}

#[test]
fn others_read_what_was_named_last() {
    let path = std::env::temp_dir().join(format!("colonnade-owned-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let file = OwnedFile::create(&path.as_path().into(), OWNER).unwrap();
    assert!(OwnedFile::create(&path.as_path().into(), OWNER).is_err());
    assert!(!file.was_published().unwrap());
    let rows = || ColumnFile::open(File::open(&path).unwrap()).map(|file| file.rows());
    let publish = |columns, stripes: &[StripePlace]| {
        file.publish(file.length().unwrap(), columns, Vec::new(), stripes.to_vec()).unwrap()
    };
    assert!(rows().is_err());
    let mut stripes = vec![put(&file, 10, 1)];
    let first = publish(columns(1), &stripes);
    assert!(rows().is_err());
    file.name(&first).unwrap();
    assert_eq!(rows().unwrap(), 10);
    // A load that was rolled back leaves bytes, and the next one a column more.
    put(&file, 99, 1);
    stripes.push(put(&file, 20, 2));
    let second = publish(columns(2), &stripes);
    assert_eq!(rows().unwrap(), 10);
    file.name(&second).unwrap();
    assert_eq!(rows().unwrap(), 30);
    // Many of them, then none of the first ones any more.
    for _ in 0..300 {
        stripes.push(put(&file, 1, 2));
        file.name(&publish(columns(2), &stripes)).unwrap();
    }
    let open = ColumnFile::open(File::open(&path).unwrap()).unwrap();
    assert_eq!((open.rows(), open.owner()), (330, Some(OWNER)));
    for at in 0..stripes.len() {
        let stripe = open.stripe(at).unwrap().unwrap();
        assert_eq!(stripe.column(1).unwrap().is_some(), at > 0);
        assert!(stripe.verify().unwrap().is_empty());
    }
    file.name(&publish(columns(2), &stripes[2..])).unwrap();
    assert_eq!(rows().unwrap(), 300);
    file.name(&publish(columns(2), &[])).unwrap();
    assert_eq!(rows().unwrap(), 0);
    // Who opened it before reads on, and nobody else loads it.
    assert_eq!(open.stripe(0).unwrap().unwrap().verify().unwrap(), [""; 0]);
    let refused = ColumnWriter::append(&path, WriteOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("foreign table of PostgreSQL (OID 16384, database 5)"), "{refused}");
    assert_eq!(OwnedFile::open(&path.as_path().into(), false).unwrap().unwrap().owner(), OWNER);
    fs::remove_file(&path).unwrap();
}
