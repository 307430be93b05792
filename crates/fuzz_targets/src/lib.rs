//! One fuzz target per reader of stored bytes: plain functions that must return for any input, without panic
//! and without memory out of proportion.
//!
//! `tests/mutations.rs` runs them for a few seconds on mutated good bytes; libFuzzer or AFL can drive the
//! same functions. A target puts the checksum right where one guards the bytes: otherwise nothing behind the
//! checksum would ever be reached.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use encodings::{Chunk, NoPglz, SharedColumn, filter_vector};
use stripe::{CHECKSUM_BYTES, StripeReader, Summary, checksum, prune_chunk, prune_stripe, with_orders};
use vector::{CompareOp, LogicalType, PhysicalType, Predicate, Scalar, Selection, Values, Vector};

/// Rows a target lets bytes declare: what is decoded must stay small.
const MOST_ROWS: u32 = 4096;

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
    let _ = chunk.encoding();
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
                point_at(&mut predicate, column);
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

fn point_at(predicate: &mut Predicate, wanted: usize) {
    match predicate {
        Predicate::Compare { column, .. }
        | Predicate::In { column, .. }
        | Predicate::NotIn { column, .. }
        | Predicate::IsNull { column }
        | Predicate::IsNotNull { column }
        | Predicate::StartsWith { column, .. } => *column = wanted,
        Predicate::Always(_) | Predicate::And(_) | Predicate::Or(_) => {}
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
            point_at(&mut predicate, column);
            let _ = prune_stripe(&summary, &predicate);
        }
    }
}
