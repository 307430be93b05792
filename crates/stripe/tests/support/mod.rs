//! Random columns for the stripe's tests: every type, every pattern of NULLs and of values, from a seed. Owns
//! the generator and the comparison of rows; each test file includes it.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::cast_possible_truncation)]

pub mod store;

use stripe::Layout;
use vector::{CompareOp, LogicalType, Predicate, Scalar, Values, Vector, VectorBuilder, compare_decimals};

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub fn index(&mut self, limit: usize) -> usize {
        self.below(limit as u64) as usize
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())].clone()
    }
}

pub const LAYOUTS: [Layout; 2] = [Layout::Columns, Layout::Blocks];

pub const TYPES: [LogicalType; 16] = [
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
    LogicalType::FixedBytes(1),
    LogicalType::FixedBytes(6),
    LogicalType::FixedBytes(24),
    LogicalType::Bytes,
    LogicalType::UInt64,
];

/// How the values of a column are distributed.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Constant,
    Few,
    Sorted,
    Runs,
    Small,
    Wild,
}

pub const SHAPES: [Shape; 6] =
    [Shape::Constant, Shape::Few, Shape::Sorted, Shape::Runs, Shape::Small, Shape::Wild];

/// A raw number of this shape for row `row`.
fn number(random: &mut Random, shape: Shape, row: usize) -> i64 {
    match shape {
        Shape::Constant => 42,
        Shape::Few => random.below(5) as i64 - 2,
        Shape::Sorted => row as i64 * 3 - 100,
        Shape::Runs => (row / 37) as i64 % 11,
        Shape::Small => random.below(2000) as i64 - 1000,
        Shape::Wild => match random.below(12) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => 0,
            3 => -1,
            _ => random.next() as i64,
        },
    }
}

fn float(random: &mut Random, shape: Shape, row: usize) -> f64 {
    match shape {
        Shape::Wild => match random.below(9) {
            0 => f64::NAN,
            1 => -f64::NAN,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            4 => -0.0,
            5 => 0.0,
            _ => f64::from_bits(random.next()),
        },
        Shape::Few => [0.0, -0.0, 1.5, -2.25, f64::NAN][random.index(5)],
        _ => number(random, shape, row) as f64 / 100.0,
    }
}

fn text(random: &mut Random, shape: Shape, row: usize) -> Vec<u8> {
    match shape {
        Shape::Constant => b"always the same text".to_vec(),
        Shape::Few => random.pick(&[&b""[..], b"a", b"b", b"prefix one and more", b"prefix two"]).to_vec(),
        Shape::Wild => {
            let len = match random.below(10) {
                0 => 0,
                1 => 200,
                2 => 64,
                3 => 65,
                _ => random.index(30),
            };
            let high = random.below(3) == 0;
            (0..len).map(|_| if high { 0xff } else { random.next() as u8 }).collect()
        }
        Shape::Small => {
            format!("{:032x}", u128::from(random.next()) << 64 | u128::from(random.next())).into_bytes()
        }
        _ => format!(
            "/page/{:09}/with/a/rather/long/tail/that/repeats/on/every/row/of/it",
            number(random, shape, row) + 1000
        )
        .into_bytes(),
    }
}

/// A column of `rows` rows; `nulls` of 100 rows are NULL (100 and above: all).
pub fn column(random: &mut Random, logical: LogicalType, shape: Shape, rows: usize, nulls: u64) -> Vector {
    let mut builder = VectorBuilder::new(logical);
    for row in 0..rows {
        if random.below(100) < nulls {
            builder.push_null();
            continue;
        }
        let raw = number(random, shape, row);
        let pushed = match logical {
            LogicalType::Bool => builder.push_bool(raw % 2 != 0),
            LogicalType::Int16 => builder.push_i16(raw as i16),
            LogicalType::Int32 | LogicalType::Date => builder.push_i32(raw as i32),
            LogicalType::Int64 | LogicalType::Timestamp | LogicalType::UInt64 => builder.push_i64(raw),
            LogicalType::Float32 => builder.push_f32(float(random, shape, row) as f32),
            LogicalType::Float64 => builder.push_f64(float(random, shape, row)),
            LogicalType::Numeric => match (shape, random.below(50)) {
                (Shape::Wild, 0) => builder.push_numeric_side(b"NaN"),
                (Shape::Wild, 1) => builder.push_numeric(i128::from(raw) * i128::from(raw), 4, 4),
                (Shape::Wild, scale) => builder.push_numeric(i128::from(raw), scale as u16 % 6, 6),
                (Shape::Few, _) => builder.push_numeric(i128::from(raw) * 10, 1, random.below(3) as u16 + 1),
                _ => builder.push_numeric(i128::from(raw), 2, 2),
            },
            LogicalType::Text | LogicalType::Bytes => builder.push_bytes(&text(random, shape, row)),
            LogicalType::Uuid => builder.push_bytes(&spread(raw, 16)),
            LogicalType::FixedBytes(width) => builder.push_bytes(&spread(raw, usize::from(width))),
        };
        assert!(pushed);
    }
    builder.finish(&|unscaled, scale, _| format!("{unscaled}e-{scale}").into_bytes().into())
}

fn spread(raw: i64, width: usize) -> Vec<u8> {
    raw.to_be_bytes().into_iter().rev().cycle().take(width).collect()
}

/// A column of a random shape.
pub fn any_column(random: &mut Random, logical: LogicalType, rows: usize) -> Vector {
    let shape = random.pick(&SHAPES);
    let nulls = random.pick(&[0, 0, 1, 30, 99, 100]);
    column(random, logical, shape, rows, nulls)
}

/// One row, in a form that compares as the stored value must: bit for bit.
#[derive(Debug, PartialEq, Clone)]
pub enum Cell {
    Null,
    Bits(u64),
    Bytes(Vec<u8>),
    Decimal { unscaled: i128, scale: u16, display: u16 },
    Side(Vec<u8>),
}

pub fn cell(vector: &Vector, row: usize) -> Cell {
    if !vector.is_valid(row) {
        return Cell::Null;
    }
    match &vector.values {
        Values::Bool(bits) => Cell::Bits(u64::from(bits.get(row))),
        Values::Int16(values) => Cell::Bits(values[row] as u64),
        Values::Int32(values) => Cell::Bits(values[row] as u64),
        Values::Int64(values) => Cell::Bits(values[row] as u64),
        Values::Float32(values) => Cell::Bits(u64::from(values[row].to_bits())),
        Values::Float64(values) => Cell::Bits(values[row].to_bits()),
        Values::Fixed(fixed) => Cell::Bytes(fixed.get(row).to_vec()),
        Values::Bytes(views) => Cell::Bytes(views.get(row).to_vec()),
        Values::Numeric(numeric) => match numeric.side_value(row) {
            Some(bytes) => Cell::Side(bytes.to_vec()),
            None => Cell::Decimal {
                unscaled: numeric.ints.get(row),
                scale: numeric.scale,
                display: numeric.display.get(row),
            },
        },
        _ => cell(&vector.clone().flatten(), row),
    }
}

pub fn same(a: &Cell, b: &Cell) -> bool {
    match (a, b) {
        (
            Cell::Decimal { unscaled: a, scale: a_scale, display: a_display },
            Cell::Decimal { unscaled: b, scale: b_scale, display: b_display },
        ) => compare_decimals(*a, *a_scale, *b, *b_scale).is_eq() && a_display == b_display,
        _ => a == b,
    }
}

/// Panics at the first row where they differ.
pub fn assert_same(got: &Vector, wanted: &Vector, what: &str) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    assert_eq!(got.logical, wanted.logical, "{what}");
    let (got, wanted) = (got.clone().flatten(), wanted.clone().flatten());
    for row in 0..wanted.len() {
        let (a, b) = (cell(&got, row), cell(&wanted, row));
        assert!(same(&a, &b), "{what}, row {row}: {a:?} is not {b:?}");
    }
}

/// The value of a row as a constant; `None` for NULL and side values.
pub fn scalar(vector: &Vector, row: usize) -> Option<Scalar> {
    Some(match (cell(vector, row), vector.logical) {
        (Cell::Null | Cell::Side(_), _) => return None,
        (Cell::Bits(bits), LogicalType::Bool) => Scalar::Bool(bits == 1),
        (Cell::Bits(bits), LogicalType::Float32) => Scalar::Float(f64::from(f32::from_bits(bits as u32))),
        (Cell::Bits(bits), LogicalType::Float64) => Scalar::Float(f64::from_bits(bits)),
        (Cell::Bits(bits), _) => Scalar::Int(bits as i64),
        (Cell::Bytes(bytes), _) => Scalar::Bytes(bytes.into()),
        (Cell::Decimal { unscaled, scale, .. }, _) => Scalar::Numeric { unscaled, scale },
    })
}

/// A constant near the values of a column: one of them, or one changed a little.
pub fn constant(random: &mut Random, vector: &Vector) -> Scalar {
    let fallback = match vector.logical {
        LogicalType::Bool => Scalar::Bool(true),
        LogicalType::Float32 | LogicalType::Float64 => Scalar::Float(1.5),
        LogicalType::Numeric => Scalar::Numeric { unscaled: 12345, scale: 3 },
        LogicalType::Uuid | LogicalType::Text | LogicalType::FixedBytes(_) | LogicalType::Bytes => {
            Scalar::Bytes(b"m".as_slice().into())
        }
        _ => Scalar::Int(7),
    };
    let row = random.index(vector.len().max(1));
    let value = if row < vector.len() { scalar(vector, row).unwrap_or(fallback) } else { fallback };
    match (random.below(3), value) {
        (0, Scalar::Int(value)) => Scalar::Int(value.saturating_add(random.below(3) as i64 - 1)),
        (0, Scalar::Float(value)) => Scalar::Float(value + 0.5),
        (0, Scalar::Numeric { unscaled, scale }) => {
            Scalar::Numeric { unscaled: unscaled.saturating_mul(10).saturating_add(1), scale: scale + 1 }
        }
        (0, Scalar::Bytes(bytes)) => {
            let mut bytes = bytes.to_vec();
            bytes.truncate(random.index(bytes.len() + 1));
            Scalar::Bytes(bytes.into())
        }
        (_, value) => value,
    }
}

/// A predicate tree over the columns.
pub fn predicate(random: &mut Random, columns: &[Vector], depth: usize) -> Predicate {
    let column = random.index(columns.len());
    let vector = &columns[column];
    match random.below(if depth > 0 { 9 } else { 7 }) {
        0 => Predicate::IsNull { column },
        1 => Predicate::IsNotNull { column },
        2 => {
            let values = (0..random.below(4)).map(|_| constant(random, vector)).collect();
            match random.below(2) {
                0 => Predicate::In { column, values },
                _ => Predicate::NotIn { column, values },
            }
        }
        3 if matches!(vector.logical, LogicalType::Text | LogicalType::Bytes) => {
            let Scalar::Bytes(bytes) = constant(random, vector) else { unreachable!() };
            let keep = random.index(bytes.len() + 1);
            Predicate::StartsWith { column, prefix: bytes[..keep].into() }
        }
        7 => Predicate::And((0..random.below(4)).map(|_| predicate(random, columns, depth - 1)).collect()),
        8 => Predicate::Or((0..random.below(4)).map(|_| predicate(random, columns, depth - 1)).collect()),
        other => {
            let op = CompareOp::ALL[(other as usize + random.index(6)) % 6];
            Predicate::Compare { column, op, value: constant(random, vector) }
        }
    }
}

/// Does row `row` satisfy the predicate? `None`: a side value is compared, which only a host can.
pub fn satisfies(columns: &[Vector], row: usize, predicate: &Predicate) -> Option<bool> {
    let value = |column: usize| -> Option<Option<Scalar>> {
        match cell(&columns[column], row) {
            Cell::Null => Some(None),
            Cell::Side(_) => None,
            _ => Some(scalar(&columns[column], row)),
        }
    };
    Some(match predicate {
        Predicate::Always(value) => *value,
        Predicate::And(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| satisfies(columns, row, part)).collect();
            if parts.contains(&Some(false)) {
                false
            } else if parts.contains(&None) {
                return None;
            } else {
                true
            }
        }
        Predicate::Or(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| satisfies(columns, row, part)).collect();
            if parts.contains(&Some(true)) {
                true
            } else if parts.contains(&None) {
                return None;
            } else {
                false
            }
        }
        Predicate::Compare { column, op, value: wanted } => match value(*column)? {
            None => false,
            Some(value) => {
                let order = value.compare(wanted).unwrap();
                match op {
                    CompareOp::Equal => order.is_eq(),
                    CompareOp::NotEqual => order.is_ne(),
                    CompareOp::Less => order.is_lt(),
                    CompareOp::LessOrEqual => order.is_le(),
                    CompareOp::Greater => order.is_gt(),
                    CompareOp::GreaterOrEqual => order.is_ge(),
                }
            }
        },
        Predicate::In { values, .. } if values.is_empty() => false,
        Predicate::In { column, values } => match value(*column)? {
            None => false,
            Some(value) => values.iter().any(|wanted| value.compare(wanted).unwrap().is_eq()),
        },
        Predicate::NotIn { column, values } => match value(*column)? {
            None => false,
            Some(value) => !values.iter().any(|wanted| value.compare(wanted).unwrap().is_eq()),
        },
        Predicate::IsNull { column } => cell(&columns[*column], row) == Cell::Null,
        Predicate::IsNotNull { column } => cell(&columns[*column], row) != Cell::Null,
        Predicate::StartsWith { column, prefix } => match cell(&columns[*column], row) {
            Cell::Bytes(bytes) => bytes.starts_with(prefix),
            _ => false,
        },
    })
}
