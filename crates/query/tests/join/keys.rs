//! Rows with keys of every type, as batches of encoded vectors.

use std::collections::VecDeque;
use std::sync::Arc;

use query::Batch;
use vector::{Dictionary, LogicalType, Values, Vector, VectorBuilder};

/// A key's type. Values are small numbers, given to each side in the way that is most different and still
/// equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Key {
    Small,
    Sparse,
    Whole,
    Text,
    Numeric,
    Huge,
    Float,
    Uuid,
    Odd,
    Bool,
    /// Texts of 1 kB, for rows that outgrow buffers.
    Long,
}

/// Those that random cases use.
pub const KEYS: [Key; 10] = [
    Key::Small,
    Key::Sparse,
    Key::Whole,
    Key::Text,
    Key::Numeric,
    Key::Huge,
    Key::Float,
    Key::Uuid,
    Key::Odd,
    Key::Bool,
];

impl Key {
    pub fn logical(self) -> LogicalType {
        match self {
            Self::Small => LogicalType::Int32,
            Self::Sparse | Self::Whole => LogicalType::Int64,
            Self::Text | Self::Long => LogicalType::Text,
            Self::Numeric | Self::Huge => LogicalType::Numeric,
            Self::Float => LogicalType::Float64,
            Self::Uuid => LogicalType::Uuid,
            Self::Odd => LogicalType::FixedBytes(11),
            Self::Bool => LogicalType::Bool,
        }
    }

    /// What tells values apart: left 5 as a numeric has a digit more than the right side has.
    pub fn model(self, value: u8, left: bool) -> u8 {
        match self {
            Self::Numeric if left && value == 5 => 105,
            Self::Bool => value % 2,
            _ => value,
        }
    }

    fn push(self, builder: &mut VectorBuilder, value: u8, left: bool) {
        let number = i64::from(value);
        let pushed = match self {
            Self::Small => builder.push_i32(i32::from(value) * 3 - 7),
            Self::Sparse => builder.push_i64((number - 3) * 1_000_000_000_007),
            Self::Whole => builder.push_i64(match value {
                0 => i64::MIN,
                1 => i64::MAX,
                _ => number,
            }),
            Self::Text => builder.push_bytes(match value {
                0 => b"",
                1 => b"twelve bytes",
                2 => b"a text of more than twelve bytes",
                3 => b"a text of more than twelve byteS",
                4 => b"x",
                5 => b"x\0",
                _ => b"another long text that is kept outside of its view",
            }),
            Self::Numeric if left && value == 5 => builder.push_numeric(5_005, 3, 3),
            Self::Numeric if left => builder.push_numeric(i128::from(value) * 10, 1, 4),
            Self::Numeric => builder.push_numeric(i128::from(value) * 100, 2, 2),
            Self::Huge => builder.push_numeric(i128::from(value) * 10i128.pow(30), 0, 0),
            Self::Float => builder.push_f64(match (value, left) {
                (0, true) => -0.0,
                (0, false) => 0.0,
                (1, true) => f64::NAN,
                (1, false) => f64::from_bits(0xfff8_0000_0000_1234),
                _ => f64::from(value) / 3.0,
            }),
            Self::Uuid => builder.push_bytes(&[value; 16]),
            Self::Odd => builder.push_bytes(&[value; 11]),
            Self::Bool => builder.push_bool(value % 2 == 1),
            Self::Long => builder.push_bytes(&[b'a' + value; 1_000]),
        };
        assert!(pushed);
    }
}

#[derive(Debug, Clone)]
pub struct Row {
    pub keys: [Option<u8>; 2],
    pub flag: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
pub enum Encoding {
    Flat,
    Dictionary,
    Runs,
}

/// The batches of one side: two keys, a flag, and a text naming the row.
pub fn batches(rows: &[Row], types: [Key; 2], left: bool, cut: usize, encoding: Encoding) -> VecDeque<Batch> {
    let mut made = VecDeque::new();
    for (number, chunk) in rows.chunks(cut).enumerate() {
        let mut columns = Vec::new();
        for (at, key) in types.into_iter().enumerate() {
            let column = column(key.logical(), chunk, |builder, row| {
                row.keys[at].map(|value| key.push(builder, value, left))
            });
            columns.push(Arc::new(encoded(column, encoding, number * 2 + at)));
        }
        columns.push(Arc::new(column(LogicalType::Bool, chunk, |builder, row| {
            row.flag.map(|flag| assert!(builder.push_bool(flag)))
        })));
        let mut names = VectorBuilder::new(LogicalType::Text);
        for at in 0..chunk.len() {
            let side = if left { "left" } else { "right" };
            assert!(names.push_bytes(format!("row of the {side} side {}", number * cut + at).as_bytes()));
        }
        columns.push(Arc::new(names.finish(&|_, _, _| Box::default())));
        made.push_back(Batch::new(chunk.len(), columns));
    }
    made
}

pub fn column(
    logical: LogicalType,
    rows: &[Row],
    push: impl Fn(&mut VectorBuilder, &Row) -> Option<()>,
) -> Vector {
    let mut builder = VectorBuilder::new(logical);
    for row in rows {
        if push(&mut builder, row).is_none() {
            builder.push_null();
        }
    }
    builder.finish(&|_, _, _| Box::default())
}

pub fn encoded(column: Vector, encoding: Encoding, id: usize) -> Vector {
    let rows = column.len();
    match encoding {
        Encoding::Flat => column,
        Encoding::Dictionary => {
            // Each value twice, used in turn: codes say nothing about equality by themselves.
            let mut codes: Vec<u32> = (0..rows as u32).collect();
            codes.iter_mut().skip(1).step_by(2).for_each(|code| *code += rows as u32);
            let mut entries = column.clone();
            entries.validity = None;
            let twice: Vec<u32> = (0..rows as u32).chain(0..rows as u32).collect();
            let dictionary = Arc::new(Dictionary { id: 100 + id as u64, entries: entries.take(&twice) });
            let mut coded = Vector::new(column.logical, Values::Dictionary { codes, dictionary });
            coded.validity = column.validity;
            coded
        }
        Encoding::Runs => {
            let ends = (1..=rows as u32).collect();
            Vector::new(column.logical, Values::Runs { ends, values: Box::new(column) })
        }
    }
}

/// A batch's rows as text: the flag and the name of each side.
pub fn shown(batch: &Batch, columns: &[usize]) -> Vec<String> {
    let flat: Vec<Vector> = columns.iter().map(|&at| batch.columns[at].as_ref().clone().flatten()).collect();
    assert!(batch.columns.iter().all(|column| column.len() == batch.rows));
    (0..batch.rows)
        .map(|row| {
            let cells = flat.iter().map(|column| match &column.values {
                _ if !column.is_valid(row) => "-".to_owned(),
                Values::Bool(bits) => bits.get(row).to_string(),
                Values::Bytes(views) => String::from_utf8(views.get(row).to_vec()).unwrap(),
                other => panic!("{other:?}"),
            });
            cells.collect::<Vec<_>>().join("|")
        })
        .collect()
}
