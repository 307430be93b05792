//! One fuzz target per reader of stored bytes: plain functions that must return for any input, without panic
//! and without memory out of proportion.
//!
//! `tests/mutations.rs` runs them for a few seconds on mutated good bytes; libFuzzer or AFL can drive the
//! same functions. A target puts the checksum right where one guards the bytes: otherwise nothing behind the
//! checksum would ever be reached.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use encodings::{Chunk, EncodeOptions, EncodingId, NoPglz, SharedColumn, encode_column, filter_vector};
use files::Field;
use files::column::{ColumnFile, TableColumns, TableStripe};
use files::parquet::{self, ParquetFile, RowGroup, Wanted};
use server_bytes::array::{self, Layout};
use server_bytes::numeric::{self, small};
use server_bytes::{jsonb, pglz};
use stripe::{
    CHECKSUM_BYTES, OpenStripe, StripeReader, Summary, checksum, prune_chunk, prune_opened, prune_stripe,
    with_orders,
};
use vector::{
    CompareOp, LogicalType, PhysicalType, Predicate, Result, Scalar, Selection, Values, Vector, VectorBuilder,
};

/// Rows a target lets bytes declare: what is decoded must stay small.
const MOST_ROWS: u32 = 4096;
/// The same of row groups. Page indexes are read of those that have several chunks.
const MOST_GROUP_ROWS: u64 = 40_000;

/// Every logical type, picked by the first input byte.
pub const TYPES: [LogicalType; 14] = [
    LogicalType::Bool,
    LogicalType::Int16,
    LogicalType::Int32,
    LogicalType::Int64,
    LogicalType::Float32,
    LogicalType::Float64,
    LogicalType::Date,
    LogicalType::Timestamp,
    LogicalType::Uuid,
    LogicalType::Numeric,
    LogicalType::Text,
    LogicalType::FixedBytes(3),
    LogicalType::FixedBytes(16),
    LogicalType::Bytes,
];

/// The type that a target reads `data` as when it begins with this byte.
pub fn type_byte(logical: LogicalType) -> u8 {
    let found = TYPES.iter().position(|&known| known == logical);
    found.and_then(|at| u8::try_from(at).ok()).unwrap_or(0)
}

/// Appends the checksum that a reader expects behind `body`.
pub fn sealed(body: &[u8]) -> Vec<u8> {
    let mut bytes = body.to_vec();
    bytes.extend_from_slice(&checksum(body).to_le_bytes());
    bytes
}

/// `body` with the checksum of the sealed piece it was cut from (dropped and computed again).
pub fn resealed(piece: &[u8]) -> Vec<u8> {
    sealed(piece.get(..piece.len().saturating_sub(CHECKSUM_BYTES)).unwrap_or(&[]))
}

/// A chunk: type byte, rows (two bytes), length of the shared section (two bytes), shared section, chunk.
pub fn fuzz_chunk(data: &[u8]) {
    let [kind, rows_low, rows_high, shared_low, shared_high, rest @ ..] = data else { return };
    let logical = TYPES.get(usize::from(*kind) % TYPES.len()).copied().unwrap_or(LogicalType::Bool);
    let rows = u32::from(u16::from_le_bytes([*rows_low, *rows_high])).min(MOST_ROWS);
    let shared_length = usize::from(u16::from_le_bytes([*shared_low, *shared_high])).min(rest.len());
    let (shared, chunk) = rest.split_at(shared_length);
    let Ok(shared) = SharedColumn::open(logical, shared, &NoPglz) else { return };
    read_chunk(logical, rows, chunk, &shared);
}

/// The section that all chunks of a column share: type byte, section. An empty chunk is read with it.
pub fn fuzz_shared(data: &[u8]) {
    let [kind, section @ ..] = data else { return };
    let logical = TYPES.get(usize::from(*kind) % TYPES.len()).copied().unwrap_or(LogicalType::Bool);
    if let Ok(shared) = SharedColumn::open(logical, section, &NoPglz) {
        read_chunk(logical, 3, &[], &shared);
    }
}

/// All ways to read one chunk. On bad bytes they may disagree (checksums are there for that), but keep their
/// contracts.
fn read_chunk(logical: LogicalType, rows: u32, bytes: &[u8], shared: &Arc<SharedColumn>) {
    let Ok(chunk) = Chunk::open(logical, rows, bytes, shared, &NoPglz) else { return };
    let _ = (chunk.encoding(), chunk.codecs());
    let decoded = chunk.decode();
    if let Ok(vector) = &decoded {
        assert_eq!(vector.len(), rows as usize, "a chunk decodes to its declared rows");
        assert_eq!(vector.logical, logical, "a chunk decodes to its declared type");
        assert_well_formed(vector);
    }
    let some: Vec<u32> = (0..rows).step_by(7).collect();
    if let Ok(taken) = chunk.take(&some) {
        assert_eq!(taken.len(), some.len(), "a chunk gives the rows it is asked for");
        assert_well_formed(&taken);
    }
    for predicate in predicates(logical) {
        let mut selection = Selection::All(rows);
        if chunk.filter(&predicate, &mut selection).is_ok() {
            let kept: Vec<u32> = selection.iter().collect();
            assert!(kept.is_sorted_by(|a, b| a < b), "a selection ascends");
            assert!(kept.last().is_none_or(|&last| last < rows), "a selection stays in its chunk");
        }
        if let Ok(vector) = &decoded {
            let _ = filter_vector(vector, &predicate, &mut Selection::All(rows));
        }
    }
}

/// What decoders promise: codes and views point at something, runs ascend.
fn assert_well_formed(vector: &Vector) {
    match &vector.values {
        Values::Dictionary { codes, dictionary } => {
            assert!(
                codes.iter().all(|&code| (code as usize) < dictionary.entries.len()),
                "codes have entries"
            );
        }
        Values::Runs { ends, values } => {
            assert!(ends.is_sorted() && ends.len() == values.len(), "runs ascend, one value each");
        }
        _ => {}
    }
    let flat = vector.clone().flatten();
    assert_eq!(flat.len(), vector.len(), "flattening keeps the rows");
    assert!(flat.validity.as_ref().is_none_or(|validity| validity.len() == flat.len()), "validity per row");
}

fn predicates(logical: LogicalType) -> Vec<Predicate> {
    let value = match logical.physical() {
        PhysicalType::Bool => Scalar::Bool(true),
        PhysicalType::Int16 | PhysicalType::Int32 | PhysicalType::Int64 => Scalar::Int(3),
        PhysicalType::Float32 | PhysicalType::Float64 => Scalar::Float(0.5),
        PhysicalType::Numeric => Scalar::Numeric { unscaled: 25, scale: 1 },
        PhysicalType::Fixed(_) | PhysicalType::Bytes => Scalar::Bytes(b"ab".as_slice().into()),
    };
    let mut predicates = vec![
        Predicate::IsNull { column: 0 },
        Predicate::In { column: 0, values: vec![value.clone()] },
        Predicate::NotIn { column: 0, values: vec![value.clone()] },
        Predicate::Compare { column: 0, op: CompareOp::Equal, value: value.clone() },
        Predicate::Compare { column: 0, op: CompareOp::LessOrEqual, value },
    ];
    if matches!(logical, LogicalType::Text | LogicalType::Bytes) {
        predicates.push(Predicate::StartsWith { column: 0, prefix: b"a".as_slice().into() });
    }
    predicates
}

/// The footer of a stripe, without its checksum; then everything it claims about a stripe of no further byte.
pub fn fuzz_footer(data: &[u8]) {
    let footer = sealed(data);
    if let Ok(reader) = StripeReader::open(&footer) {
        read_stripe(&reader, &footer);
    }
}

/// A whole stripe: offset of the footer (four bytes), then the stripe. Checksums stay as they come.
pub fn fuzz_stripe(data: &[u8]) {
    let Some((offset, stripe)) = data.split_first_chunk::<4>() else { return };
    let Some(footer) = stripe.get(u32::from_le_bytes(*offset) as usize..) else { return };
    if let Ok(reader) = StripeReader::open(footer) {
        read_stripe(&reader, stripe);
    }
}

/// Footer of one column with its checksum put right, inside an otherwise good stripe: range of the column
/// footer (two times four bytes), offset of the stripe's footer (four bytes), stripe.
pub fn fuzz_column_footer(data: &[u8]) {
    let Some((head, stripe)) = data.split_first_chunk::<12>() else { return };
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *head;
    let range = u32::from_le_bytes([a, b, c, d]) as usize..u32::from_le_bytes([e, f, g, h]) as usize;
    let mut stripe = stripe.to_vec();
    if let Some(piece) = stripe.get(range.clone()).map(resealed)
        && let Some(place) = stripe.get_mut(range)
        && place.len() == piece.len()
    {
        place.copy_from_slice(&piece);
    }
    let Some(footer) = stripe.get(u32::from_le_bytes([i, j, k, l]) as usize..) else { return };
    if let Ok(reader) = StripeReader::open(footer) {
        read_stripe(&reader, &stripe);
    }
}

fn read_stripe(reader: &StripeReader, bytes: &[u8]) {
    for column in 0..reader.column_count().min(64) {
        let Some(logical) = reader.logical(column) else { continue };
        let _ = reader.column_statistics(column, &bytes);
        for chunk in 0..reader.chunk_count().min(8) {
            for mut predicate in predicates(logical) {
                predicate.rename(&|_| Some(column));
                let _ = prune_chunk(reader, chunk, &predicate, &bytes);
            }
            let Range { start, end } = reader.chunk_rows(chunk);
            if end - start <= MOST_ROWS
                && let Ok(owned) = reader.read_chunk(column, chunk, &bytes, &NoPglz)
                && let Ok(vector) = owned.decode(&NoPglz)
            {
                assert_well_formed(&vector);
            }
        }
    }
}

/// A stripe's summary, without its checksum.
pub fn fuzz_summary(data: &[u8]) {
    let bytes = sealed(data);
    let Ok(summary) = Summary::open(&bytes) else { return };
    let _ = (summary.orders(), with_orders(&bytes, &[1]));
    for column in 0..summary.column_count().min(64) {
        let Ok(Some((logical, _))) = summary.column(column) else { continue };
        for mut predicate in predicates(logical) {
            predicate.rename(&|_| Some(column));
            let _ = prune_stripe(&summary, &predicate);
        }
    }
}

/// A stream of pglz: length of what it stands for (two bytes), stream.
pub fn fuzz_pglz(data: &[u8]) {
    let [low, high, stream @ ..] = data else { return };
    let raw_len = usize::from(u16::from_le_bytes([*low, *high]));
    if let Ok(raw) = pglz::expand(stream, raw_len) {
        assert_eq!(raw.len(), raw_len, "a stream is expanded to the declared length");
    }
}

/// A numeric with its length word.
pub fn fuzz_numeric(data: &[u8]) {
    let payload = data.get(4..).unwrap_or(&[]);
    let decimal = numeric::decode(payload);
    if let Some(decimal) = decimal {
        let again = numeric::to_side(decimal.unscaled, decimal.scale, decimal.display);
        assert_eq!(&*again, payload, "a decimal is written to the bytes it was read from");
    }
    if let Some((value, scale)) = small::parse(data) {
        assert!(small::writable(value, scale.into()), "what was parsed can be written");
        let (bytes, len) = small::write(value, scale);
        assert_eq!(bytes.get(..len), Some(data), "an integer is written to the bytes it was read from");
        assert!(decimal.is_some(), "both readers know it");
    }
    let mut text = Vec::new();
    let is_number = numeric::write_text(payload, &mut text).is_ok();
    assert_eq!(numeric::is_same(payload, payload).ok(), is_number.then_some(true), "a number is itself");
}

/// A document: lengths of a key and of another document (one and two bytes), key, other document, document.
pub fn fuzz_jsonb(data: &[u8]) {
    let [key_length, low, high, rest @ ..] = data else { return };
    let (key, rest) = rest.split_at(usize::from(*key_length).min(rest.len()));
    let other_length = usize::from(u16::from_le_bytes([*low, *high]));
    let (other, value) = rest.split_at(other_length.min(rest.len()));
    let mut out = Vec::new();
    let exists = jsonb::exists(value, key);
    if let Ok(true) = jsonb::field(value, key, &mut out) {
        assert!(exists.is_err() || matches!(exists, Ok(true)), "who has a value of a key has the key");
        let mut text = Vec::new();
        let _ = jsonb::field_text(&out, key, &mut text);
    }
    let mut text = Vec::new();
    let _ = (jsonb::field_text(value, key, &mut text), jsonb::leaves(value));
    // Whoever asks looks first how deep the other document is.
    if let Ok(false) = jsonb::is_deep(other) {
        let _ = (jsonb::contains(value, other), jsonb::leaves(other));
    }
    shred_and_read(value);
}

/// What the template encoding makes of a few equal values.
fn shred_and_read(value: &[u8]) {
    let mut builder = VectorBuilder::new(LogicalType::Bytes);
    if !(0..4).all(|_| builder.push_bytes(value)) {
        return;
    }
    let column = builder.finish(&|_, _, _| Box::default());
    let options = EncodeOptions { force: Some(EncodingId::Template), ..EncodeOptions::default() };
    let Ok(encoded) = encode_column(&column, &options) else { return };
    let shared = SharedColumn::open(LogicalType::Bytes, &encoded.shared, &NoPglz);
    let first = encoded.chunks.first();
    let chunk = shared.as_ref().ok().zip(first).map(|(shared, chunk)| {
        Chunk::open(LogicalType::Bytes, 4, &chunk.bytes, shared, &NoPglz).and_then(|chunk| chunk.decode())
    });
    let decoded = chunk.and_then(Result::ok).map(|vector| vector.flatten().values);
    assert!(matches!(&decoded, Some(Values::Bytes(values)) if values.iter().all(|found| found == value)));
}

/// An array: how its elements lie (one byte), length of an element to look for (one byte), element, array.
pub fn fuzz_array(data: &[u8]) {
    let [layout, length, rest @ ..] = data else { return };
    let layout = match layout % 4 {
        0 => Layout::Varlena,
        power => Layout::Fixed(1 << power),
    };
    let (wanted, value) = rest.split_at(usize::from(*length).min(rest.len()));
    let elements = array::elements_of(value, layout);
    let found = array::has(value, layout, wanted);
    if let Ok(elements) = &elements {
        let is_there = elements.iter().flatten().any(|element| element == wanted);
        assert_eq!(matches!(found, Ok(Some(true))), is_there, "an element is found");
        assert_eq!(array::is_empty(value, layout), Ok(elements.is_empty()), "no elements, and only then");
        let has_null = elements.iter().any(Option::is_none);
        // Each element is looked for in all of them.
        if elements.len() < 100 {
            assert_eq!(array::contains(value, layout, elements), Ok(!has_null), "an array contains itself");
        }
    }
    let _ = array::overlaps(value, layout, &[None, Some(wanted.to_vec())]);
}

/// A column file: opened, read whole and verified.
pub fn fuzz_column_file(data: &[u8]) {
    let mut bytes = data.to_vec();
    // The head, its two places, and each segment up to the footer behind it.
    reseal(&mut bytes, 0..34);
    reseal(&mut bytes, 1024..1060);
    reseal(&mut bytes, 2048..2084);
    let found = |magic: &[u8; 4]| -> Vec<usize> {
        (0..data.len().saturating_sub(3)).filter(|&at| data.get(at..at + 4) == Some(magic)).collect()
    };
    let footers = found(b"CLFF");
    for start in found(b"CLSG") {
        if let Some(&end) = footers.iter().find(|end| **end > start) {
            reseal(&mut bytes, start..end);
        }
    }
    for place in [1024, 2048] {
        let number = |at: usize, length: usize| {
            let bytes = data.get(at..at + length)?;
            Some(bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte)))
        };
        let range = number(place + 8, 8).zip(number(place + 16, 4));
        let range = range.and_then(|(start, length)| {
            let end = usize::try_from(start.checked_add(length)?).ok()?;
            Some(usize::try_from(start).ok()?..end)
        });
        reseal(&mut bytes, range.unwrap_or(0..0));
    }
    let Ok(file) = ColumnFile::open(bytes) else { return };
    for at in 0..file.stripes().len() {
        let Ok(Some(stripe)) = file.stripe(at) else { continue };
        if stripe.reader().row_count() > MOST_ROWS {
            continue;
        }
        let _ = stripe.verify();
        for column in 0..file.columns().len() {
            let _ = stripe.about(column);
            for chunk in 0..stripe.reader().chunk_count() {
                let _ = stripe.read(column, chunk);
            }
        }
    }
    as_table(data, &file);
}

/// The stripes of a column file by the columns of a table that did not write it: text that comes out is text.
fn as_table(bytes: &[u8], file: &ColumnFile<Vec<u8>>) {
    let wanted: Vec<_> = file.columns().iter().cloned().map(Some).collect();
    let Ok(columns) = TableColumns::find(file.columns(), file.defaults(), &wanted) else { return };
    for place in file.stripes().iter().filter(|place| place.rows <= MOST_ROWS) {
        let _ = columns.summary(place);
        let range = usize::try_from(place.bytes.start).ok().zip(usize::try_from(place.bytes.end).ok());
        let of_stripe = range.and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default().to_vec();
        let Ok(stripe) = TableStripe::open(place, &columns, &of_stripe) else { continue };
        for column in (0..wanted.len()).filter(|column| stripe.logical(*column).is_some()) {
            let _ = stripe.column_statistics(column, &of_stripe);
            for chunk in 0..stripe.chunk_count() {
                let read = stripe.read_chunk(column, chunk, &of_stripe, &NoPglz);
                let read = read.and_then(|mut read| {
                    read.verify()?;
                    read.decode(&NoPglz)
                });
                if let Ok(Vector { logical: LogicalType::Text, values, validity }) = read.map(Vector::flatten)
                    && let Values::Bytes(values) = values
                {
                    let is_valid = |row| validity.as_ref().is_none_or(|validity| validity.get(row));
                    let is_text = |row| std::str::from_utf8(values.get(row)).is_ok();
                    assert!((0..values.len()).all(|row| !is_valid(row) || is_text(row)), "text is text");
                }
            }
        }
    }
}

/// A Parquet file as foreign tables read it: its footer, summaries, statistics, filters, page indexes and row
/// groups.
pub fn fuzz_parquet(data: &[u8]) {
    let bytes = data.to_vec();
    let Ok(file) = ParquetFile::open(&bytes) else { return };
    let column = |field: &Field| parquet::columns(std::slice::from_ref(field)).ok()?.into_iter().next();
    let columns: Vec<_> = file.fields().iter().map(column).collect();
    let wanted = columns.iter().map(|column| Some(Wanted { column: column.as_ref()?, otherwise: None }));
    let Ok(table) = file.table(wanted.collect()) else { return };
    for (number, rows) in file.group_rows().enumerate() {
        if let Ok(summary) = file.summary(number, &table) {
            // What is made of a footer is never broken, whatever the footer says.
            let column = Summary::open(&summary).and_then(|summary| summary.column(0));
            assert!(column.is_ok(), "{column:?}");
        }
        let Ok(group) = RowGroup::open(&file, "fuzzed", number, &table) else { continue };
        if rows > MOST_GROUP_ROWS {
            continue;
        }
        for column in 0..columns.len() {
            let bound = group.column_statistics(column, &bytes);
            let Ok(Some(Some(bound))) = bound.map(|known| known.map(|known| known.min.clone())) else {
                continue;
            };
            let predicate = Predicate::Compare { column, op: CompareOp::Equal, value: bound.value };
            let _ = prune_opened(&group, &predicate, &bytes);
        }
        for chunk in (0..group.chunk_count()).rev() {
            for column in 0..columns.len() {
                let _ = group.statistics(column, chunk, &bytes);
                let Ok(mut read) = group.read_chunk(column, chunk, &bytes, &NoPglz) else { continue };
                let count = group.chunk_rows(chunk).len();
                if read.verify().is_ok()
                    && let Ok(vector) = read.decode(&NoPglz)
                {
                    assert_eq!(vector.flatten().len(), count);
                }
                let _ = read.take(&[0], &NoPglz);
            }
        }
    }
}

/// Puts the checksum right at the end of a piece.
fn reseal(bytes: &mut [u8], piece: Range<usize>) {
    if let Some(piece) = bytes.get_mut(piece)
        && let Some((body, sum)) = piece.split_last_chunk_mut::<CHECKSUM_BYTES>()
    {
        *sum = checksum(body).to_le_bytes();
    }
}
