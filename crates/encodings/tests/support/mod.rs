//! The conformance suite: what every encoding must do with any column. Call [`check`] with a column and
//! options.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../../server_bytes/tests/support/jsonb.rs"]
pub mod jsonb;

use std::sync::Arc;

use encodings::{
    Chunk, Codec, EncodeOptions, EncodedColumn, NoPglz, SharedColumn, Single, encode_column, filter_vector,
};
use vector::{
    Bitmap, CompareOp, Error, LogicalType, PhysicalType, Predicate, Scalar, Selection, Values, Vector,
    VectorBuilder,
};

/// A value of a row as something that compares bit for bit; NULL is `None`.
pub fn row(vector: &Vector, row: usize) -> Option<Vec<u8>> {
    if !vector.is_valid(row) {
        return None;
    }
    Some(match &vector.values {
        Values::Bool(bits) => vec![u8::from(bits.get(row))],
        Values::Int16(v) => v[row].to_le_bytes().to_vec(),
        Values::Int32(v) => v[row].to_le_bytes().to_vec(),
        Values::Int64(v) => v[row].to_le_bytes().to_vec(),
        Values::Float32(v) => v[row].to_bits().to_le_bytes().to_vec(),
        Values::Float64(v) => v[row].to_bits().to_le_bytes().to_vec(),
        Values::Fixed(v) => v.get(row).to_vec(),
        Values::Bytes(v) => v.get(row).to_vec(),
        Values::Numeric(v) => match v.side_value(row) {
            Some(side) => side.to_vec(),
            None => format!("{} {} {}", v.ints.get(row), v.scale, v.display.get(row)).into_bytes(),
        },
        Values::Constant(value, _) => return self::row(value, 0),
        Values::Dictionary { codes, dictionary } => {
            return self::row(&dictionary.entries, codes[row] as usize);
        }
        Values::Runs { ends, values } => {
            return self::row(values, ends.partition_point(|&end| end as usize <= row));
        }
    })
}

/// All rows.
pub fn rows(vector: &Vector) -> Vec<Option<Vec<u8>>> {
    (0..vector.len()).map(|i| row(vector, i)).collect()
}

/// Encodes and checks everything that can be checked; returns the encoded column.
pub fn check(column: &Vector, options: &EncodeOptions<'_>) -> EncodedColumn {
    let encoded = encode_column(column, options).unwrap();
    let shared = SharedColumn::open(column.logical, &encoded.shared, &NoPglz).unwrap();
    assert!([Codec::None, options.codec].contains(&shared.codec()));
    let predicates = predicates(column);
    let mut start = 0;
    for chunk in &encoded.chunks {
        let want = column.slice(start, chunk.rows as usize);
        let opened = Chunk::open(column.logical, chunk.rows, &chunk.bytes, &shared, &NoPglz).unwrap();
        assert_eq!(opened.rows(), want.len());
        assert_eq!(opened.encoding(), chunk.encoding);
        assert!(opened.codecs().unwrap().iter().all(|codec| *codec == options.codec), "{}", chunk.encoding);
        let decoded = opened.decode().unwrap();
        assert_eq!(decoded.logical, column.logical);
        assert_eq!(decoded.len(), want.len(), "{}", chunk.encoding);
        assert!(rows(&decoded) == rows(&want), "{} does not decode to what it was made from", chunk.encoding);
        assert!(rows(&decoded.clone().flatten()) == rows(&want), "{} flattened", chunk.encoding);
        assert_eq!(decoded.null_count(), want.null_count());
        check_single(&opened, &want, &chunk.encoding);
        check_consecutive(&opened, &want, &chunk.encoding);
        check_take(&opened, &want, &chunk.encoding);
        // Long chunks repeat what shorter ones show: a part of the predicates is enough for them.
        for predicate in predicates.iter().step_by(if want.len() > 500 { 3 } else { 1 }) {
            check_filter(&opened, &decoded, &want, predicate, &chunk.encoding);
        }
        start += chunk.rows as usize;
    }
    assert_eq!(start, column.len(), "chunks cover the column");
    encoded
}

/// A value taken alone, as `row` gives it.
fn single(value: Single<'_>, logical: LogicalType) -> Option<Vec<u8>> {
    Some(match (value, logical) {
        (Single::Null, _) => return None,
        (Single::Int(v), LogicalType::Int16) => i16::try_from(v).unwrap().to_le_bytes().to_vec(),
        (Single::Int(v), LogicalType::Int32 | LogicalType::Date) => {
            i32::try_from(v).unwrap().to_le_bytes().to_vec()
        }
        (Single::Int(v), _) => v.to_le_bytes().to_vec(),
        (Single::Float32(v), _) => v.to_bits().to_le_bytes().to_vec(),
        (Single::Float64(v), _) => v.to_bits().to_le_bytes().to_vec(),
        (Single::Numeric { unscaled, scale, display }, _) => {
            format!("{unscaled} {scale} {display}").into_bytes()
        }
        (Single::Bool(v), _) => vec![v.into()],
        (Single::Bytes(v), _) => v.to_vec(),
        (Single::Of(vector, row), _) => return self::row(vector, row),
    })
}

fn check_single(chunk: &Chunk<'_>, want: &Vector, encoding: &str) {
    // The last round finds a dictionary decoded. The room has what the value before needed.
    let mut room = vec![0xA5; 3];
    for round in 0..2 {
        for at in
            (0..want.len()).step_by(if want.len() > 500 { 7 } else { 1 }).chain(want.len().checked_sub(1))
        {
            match chunk.single(at as u32, &mut room).unwrap() {
                Some(value) => {
                    assert_eq!(single(value, want.logical), row(want, at), "{encoding}: row {at} alone");
                }
                None => {
                    let bytes =
                        matches!(want.logical.physical(), PhysicalType::Bytes | PhysicalType::Fixed(_));
                    assert!(round == 0 || !bytes, "{encoding}: row {at} needs a vector");
                }
            }
        }
        if round == 0 {
            chunk.take(&(0..want.len() as u32).collect::<Vec<_>>()).unwrap();
        }
    }
    assert!(
        matches!(chunk.single(want.len() as u32, &mut room), Err(Error::InvalidInput(_))),
        "{encoding}: past the end"
    );
}

/// Integers that are said to follow each other one by one do.
fn check_consecutive(chunk: &Chunk<'_>, want: &Vector, encoding: &str) {
    if let Some(first) = chunk.consecutive() {
        for at in 0..want.len() {
            let value = Single::Int(first + at as i64);
            assert_eq!(single(value, want.logical), row(want, at), "{encoding}: row {at} from {first} on");
        }
    }
}

fn check_take(chunk: &Chunk<'_>, want: &Vector, encoding: &str) {
    let len = want.len() as u32;
    let every = |step: usize, from: u32| (from..len).step_by(step).collect::<Vec<_>>();
    let last = if len == 0 { vec![] } else { vec![len - 1] };
    for positions in
        [vec![], every(1, 0), every(7, 3), every(30, 2), every(1000, 999), every(1024, 1023), last]
    {
        let taken = chunk.take(&positions).unwrap();
        assert_eq!(taken.len(), positions.len(), "{encoding}");
        assert!(rows(&taken) == rows(&want.take(&positions)), "{encoding}: take of {} rows", positions.len());
    }
    assert!(matches!(chunk.take(&[len]), Err(Error::InvalidInput(_))), "{encoding}: a row past the end");
    if len > 1 {
        assert!(chunk.take(&[1, 0]).is_err(), "{encoding}: descending positions");
    }
}

fn check_filter(chunk: &Chunk<'_>, decoded: &Vector, want: &Vector, predicate: &Predicate, encoding: &str) {
    let len = want.len() as u32;
    let sparse = Selection::Rows((0..len).filter(|row| row % 97 == 5 || row % 1024 == 0).collect());
    let most = Selection::Rows((0..len).filter(|row| row % 3 != 1).collect());
    for selection in [Selection::All(len), sparse, most, Selection::Rows(vec![])] {
        let mut oracle = selection.clone();
        // The oracle works on the column that was encoded, so that it depends on no decoder.
        let outcome = filter_vector(want, predicate, &mut oracle);
        if let Err(error) = &outcome {
            assert!(matches!(error, Error::Unsupported(_)), "{predicate:?}: {error}");
            let mut untouched = selection.clone();
            assert!(filter_vector(decoded, predicate, &mut untouched).is_err());
            assert_eq!(untouched, selection);
            continue;
        }
        if let Predicate::NotIn { values, .. } = predicate {
            let unequal = |value: &Scalar| Predicate::Compare {
                column: 0,
                op: CompareOp::NotEqual,
                value: value.clone(),
            };
            let mut one_by_one = selection.clone();
            values.iter().for_each(|value| filter_vector(want, &unequal(value), &mut one_by_one).unwrap());
            assert_eq!(picked(&one_by_one), picked(&oracle), "{predicate:?} one value after the other");
        }
        let mut by_vector = selection.clone();
        if filter_vector(decoded, predicate, &mut by_vector).is_ok() {
            assert_eq!(picked(&by_vector), picked(&oracle), "{encoding}: filter_vector {predicate:?}");
        }
        let mut by_chunk = selection.clone();
        if chunk.filter(predicate, &mut by_chunk).unwrap() {
            assert_eq!(picked(&by_chunk), picked(&oracle), "{encoding}: filter {predicate:?}");
        } else {
            assert_eq!(by_chunk, selection, "{encoding}: refused but touched the selection");
        }
    }
}

fn picked(selection: &Selection) -> Vec<u32> {
    selection.iter().collect()
}

/// Predicates around some of the column's own values and outside of them.
fn predicates(column: &Vector) -> Vec<Predicate> {
    let mut scalars: Vec<Scalar> = Vec::new();
    let len = column.len();
    for at in [0, 1, len / 3, len / 2, len.saturating_sub(1)] {
        if at < len
            && column.is_valid(at)
            && let Some(scalar) = scalar(column, at)
        {
            scalars.push(scalar);
        }
    }
    scalars.extend(strangers(column.logical));
    let ops = CompareOp::ALL;
    let mut out = vec![
        Predicate::Always(true),
        Predicate::Always(false),
        Predicate::IsNull { column: 0 },
        Predicate::IsNotNull { column: 0 },
        Predicate::In { column: 0, values: scalars.clone() },
        Predicate::In { column: 0, values: vec![] },
    ];
    // Lists that are compared one by one, and lists that are searched.
    for (count, first) in [(1, 0), (3, 0), (3, 1)] {
        let step = (len / (count * count * 7)).max(1);
        let some = (first..len).step_by(step).filter_map(|at| scalar(column, at));
        let values: Vec<Scalar> = scalars.iter().rev().cloned().chain(some).collect();
        out.push(Predicate::In { column: 0, values: values.clone() });
        out.push(Predicate::NotIn { column: 0, values });
    }
    for (i, value) in scalars.iter().enumerate() {
        let compare = |op| Predicate::Compare { column: 0, op, value: value.clone() };
        out.extend(ops.into_iter().map(compare));
        let other = scalars[(i + 1) % scalars.len()].clone();
        let upper = Predicate::Compare { column: 0, op: CompareOp::Less, value: other };
        out.push(Predicate::And(vec![compare(CompareOp::GreaterOrEqual), upper.clone()]));
        out.push(Predicate::Or(vec![compare(CompareOp::Equal), upper, Predicate::IsNull { column: 0 }]));
        if let Scalar::Bytes(bytes) = value {
            for len in [0, 1, bytes.len() / 2, bytes.len()] {
                let prefix = bytes.get(..len).unwrap_or(bytes).into();
                out.push(Predicate::StartsWith { column: 0, prefix });
            }
        }
    }
    out
}

fn scalar(column: &Vector, row: usize) -> Option<Scalar> {
    Some(match &column.values {
        Values::Bool(bits) => Scalar::Bool(bits.get(row)),
        Values::Int16(v) => Scalar::Int(v[row].into()),
        Values::Int32(v) => Scalar::Int(v[row].into()),
        Values::Int64(v) => Scalar::Int(v[row]),
        Values::Float32(v) => Scalar::Float(v[row].into()),
        Values::Float64(v) => Scalar::Float(v[row]),
        Values::Fixed(v) => Scalar::Bytes(v.get(row).into()),
        Values::Bytes(v) => Scalar::Bytes(v.get(row).into()),
        Values::Numeric(v) if v.side_value(row).is_none() => {
            Scalar::Numeric { unscaled: v.ints.get(row), scale: v.scale }
        }
        _ => return None,
    })
}

/// Constants that the column need not contain.
fn strangers(logical: LogicalType) -> Vec<Scalar> {
    let numeric = |unscaled, scale| Scalar::Numeric { unscaled, scale };
    match logical {
        LogicalType::Bool => vec![Scalar::Bool(false), Scalar::Bool(true)],
        LogicalType::Float32 | LogicalType::Float64 => {
            [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 0.1, 1e300, -3.5]
                .map(Scalar::Float)
                .into()
        }
        LogicalType::Numeric => vec![
            numeric(0, 0),
            numeric(5, 20),
            numeric(-5, 20),
            numeric(7, 60),
            numeric(-7, 60),
            numeric(i128::MAX, 0),
            numeric(i128::MIN, 0),
            Scalar::Int(12),
        ],
        LogicalType::Text | LogicalType::Bytes | LogicalType::Uuid | LogicalType::FixedBytes(_) => {
            [&b""[..], b"a", b"abc", &[0xff; 20], &[0; 16]].map(|b| Scalar::Bytes(b.into())).into()
        }
        _ => [0, 1, -1, 255, i64::MIN, i64::MAX, 40_000, -2_000_000_000].map(Scalar::Int).into(),
    }
}

/// Sets rows to NULL in several patterns: none, all, some.
pub fn with_nulls(column: &Vector) -> Vec<Vector> {
    let len = column.len();
    let pattern = |null: &dyn Fn(usize) -> bool| {
        let bits: Bitmap = (0..len).map(|row| !null(row)).collect();
        Vector { validity: Some(bits), ..column.clone() }
    };
    vec![
        column.clone(),
        pattern(&|_| false),
        pattern(&|_| true),
        pattern(&|row| row % 3 == 0),
        pattern(&|row| row < len / 2),
        pattern(&|row| row != len / 2),
        pattern(&|row| (row * 2_654_435_761) % 7 < 2),
    ]
}

/// A builder's vector.
pub fn build(logical: LogicalType, fill: impl FnOnce(&mut VectorBuilder)) -> Vector {
    let mut builder = VectorBuilder::new(logical);
    fill(&mut builder);
    builder.finish(&|unscaled, scale, display| format!("{unscaled}e-{scale}/{display}").into_bytes().into())
}

/// Every byte of the shared section and of each chunk changed in several ways, and every truncation: reading
/// must say `Corrupt` (or `Unsupported`), or give some vector of the right length.
pub fn check_corruption(column: &Vector, options: &EncodeOptions<'_>) {
    let encoded = encode_column(column, options).unwrap();
    let predicates = predicates(column);
    let read = |shared: &[u8], bytes: &[u8], rows: u32| -> Result<(), Error> {
        let shared: Arc<SharedColumn> = SharedColumn::open(column.logical, shared, &NoPglz)?;
        let chunk = Chunk::open(column.logical, rows, bytes, &shared, &NoPglz)?;
        let decoded = chunk.decode();
        if let Ok(decoded) = &decoded {
            assert_eq!(decoded.len(), rows as usize);
            assert_eq!(self::rows(decoded).len(), rows as usize);
        }
        let positions: Vec<u32> = (0..rows).step_by(3).collect();
        if let Ok(taken) = chunk.take(&positions) {
            assert_eq!(taken.len(), positions.len());
        }
        let mut room = Vec::new();
        for &position in &positions {
            if let Ok(Some(Single::Of(vector, row))) = chunk.single(position, &mut room) {
                assert!(row < vector.len());
            }
        }
        for predicate in predicates.iter().step_by(5) {
            let mut selection = Selection::All(rows);
            let _ = chunk.filter(predicate, &mut selection);
            assert!(selection.iter().all(|row| row < rows));
        }
        decoded.map(|_| ())
    };
    let fine = |outcome: Result<(), Error>| match outcome {
        Ok(()) | Err(Error::Corrupt { .. } | Error::Unsupported(_)) => {}
        Err(other) => panic!("bad bytes gave {other:?}"),
    };
    for chunk in &encoded.chunks {
        let mut bytes = chunk.bytes.clone();
        for at in 0..bytes.len() {
            let original = bytes[at];
            for change in [original ^ 0xff, original ^ 1, original ^ 0x80, original.wrapping_add(1), 0] {
                bytes[at] = change;
                fine(read(&encoded.shared, &bytes, chunk.rows));
            }
            bytes[at] = original;
            fine(read(&encoded.shared, &bytes[..at], chunk.rows));
        }
        fine(read(&encoded.shared, &bytes, chunk.rows + 1));
        fine(read(&encoded.shared, &bytes, chunk.rows.saturating_sub(1)));
        let mut shared = encoded.shared.clone();
        for at in 0..shared.len() {
            let original = shared[at];
            for change in [original ^ 0xff, original ^ 1, original ^ 0x80, 0] {
                shared[at] = change;
                fine(read(&shared, &bytes, chunk.rows));
            }
            shared[at] = original;
            fine(read(&shared[..at], &bytes, chunk.rows));
        }
    }
}
