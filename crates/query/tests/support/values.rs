//! Values one by one, and vectors of them: what the tests hold beside what the engine gives.

use std::cmp::Ordering;

use vector::{
    DisplayScales, LogicalType, NumericInts, NumericValues, Values, Vector, VectorBuilder, compare_decimals,
    compare_floats,
};

/// One value outside of vectors.
#[derive(Debug, Clone, PartialEq)]
pub enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Unscaled, scale, display scale.
    Numeric(i128, u16, u16),
    /// Bytes; of what is no number among decimals, those of the side lane.
    Text(Vec<u8>),
}

impl Plain {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into().into_bytes())
    }

    /// A numeric that shows all digits of its scale.
    pub fn decimal(unscaled: i128, scale: u16) -> Self {
        Self::Numeric(unscaled, scale, scale)
    }

    /// The order of values: NULL last.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Greater,
            (_, Self::Null) => Ordering::Less,
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => compare_floats(*a, *b),
            (Self::Numeric(a, s, _), Self::Numeric(b, t, _)) => compare_decimals(*a, *s, *b, *t),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => panic!("{self:?} beside {other:?}"),
        }
    }

    /// As the server would show it.
    pub fn show(&self) -> String {
        match self.clone().shown() {
            Self::Null => "NULL".into(),
            Self::Bool(v) => v.to_string(),
            Self::Int(v) => v.to_string(),
            Self::Float(0.0) => "0".into(),
            Self::Float(v) => v.to_string(),
            Self::Numeric(v, 0, _) => v.to_string(),
            Self::Numeric(v, scale, _) => {
                let factor = 10u128.pow(u32::from(scale));
                let (whole, part) = (v.unsigned_abs() / factor, v.unsigned_abs() % factor);
                let sign = if v < 0 { "-" } else { "" };
                format!("{sign}{whole}.{part:0width$}", width = usize::from(scale))
            }
            Self::Text(v) => String::from_utf8_lossy(&v).into(),
        }
    }

    /// The same value; a numeric has the scale that it shows. No digit may be past that one.
    fn shown(self) -> Self {
        let Self::Numeric(unscaled, scale, display) = self else { return self };
        let factor = 10i128.pow(u32::from(scale.abs_diff(display)));
        if display >= scale {
            return Self::decimal(unscaled * factor, display);
        }
        assert_eq!(unscaled % factor, 0, "digits past the display scale");
        Self::decimal(unscaled / factor, display)
    }
}

/// The value in a row of any vector, as it is stored: a numeric may have another scale than it shows.
pub fn at(vector: &Vector, row: usize) -> Plain {
    if !vector.is_valid(row) {
        return Plain::Null;
    }
    match &vector.values {
        Values::Bool(bits) => Plain::Bool(bits.get(row)),
        Values::Int16(values) => Plain::Int(values[row].into()),
        Values::Int32(values) => Plain::Int(values[row].into()),
        Values::Int64(values) => Plain::Int(values[row]),
        Values::Float32(values) => Plain::Float(values[row].into()),
        Values::Float64(values) => Plain::Float(values[row]),
        Values::Fixed(values) => Plain::Text(values.get(row).to_vec()),
        Values::Bytes(views) => Plain::Text(views.get(row).to_vec()),
        Values::Numeric(numeric) => {
            if let Some(special) = numeric.side_value(row) {
                return Plain::Text(special.to_vec());
            }
            Plain::Numeric(numeric.ints.get(row), numeric.scale, numeric.display.get(row))
        }
        Values::Constant(value, _) => at(value, 0),
        Values::Dictionary { codes, dictionary } => at(&dictionary.entries, codes[row] as usize),
        Values::Runs { ends, values } => at(values, ends.iter().position(|&end| end as usize > row).unwrap()),
    }
}

/// The value in a row of any vector, as a user sees it.
pub fn value(vector: &Vector, row: usize) -> Plain {
    at(vector, row).shown()
}

/// A flat vector of these values.
pub fn vector(logical: LogicalType, values: &[Plain]) -> Vector {
    let mut builder = VectorBuilder::new(logical);
    for value in values {
        let pushed = match value {
            Plain::Null => {
                builder.push_null();
                true
            }
            Plain::Bool(value) => builder.push_bool(*value),
            Plain::Int(value) => {
                builder.push_i64(*value)
                    || i32::try_from(*value).is_ok_and(|value| builder.push_i32(value))
                    || i16::try_from(*value).is_ok_and(|value| builder.push_i16(value))
            }
            Plain::Float(value) => builder.push_f64(*value) || builder.push_f32(*value as f32),
            Plain::Numeric(unscaled, scale, display) => builder.push_numeric(*unscaled, *scale, *display),
            Plain::Text(bytes) => builder.push_bytes(bytes),
        };
        assert!(pushed, "{value:?} is no {logical:?}");
    }
    builder.finish(&|_, _, _| unreachable!())
}

/// A flat vector of one value. A decimal keeps its scale, as that of a product may be larger than a column's.
pub fn single(logical: LogicalType, value: &Plain) -> Vector {
    let Plain::Numeric(unscaled, scale, display) = *value else {
        return vector(logical, std::slice::from_ref(value));
    };
    let ints = NumericInts::Int128(vec![unscaled]).narrowed();
    let display = DisplayScales::Constant(display);
    Vector::new(logical, Values::Numeric(NumericValues { ints, scale, display, side: Vec::new() }))
}

/// Equal in all that a user sees.
pub fn same(a: &Plain, b: &Plain) -> bool {
    match (a, b) {
        (Plain::Numeric(a, a_scale, a_display), Plain::Numeric(b, b_scale, b_display)) => {
            compare_decimals(*a, *a_scale, *b, *b_scale).is_eq() && a_display == b_display
        }
        (Plain::Float(a), Plain::Float(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}
