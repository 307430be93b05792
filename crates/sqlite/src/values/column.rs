//! Values of one column, collected for a stripe, and read again.

use query::row_container::nulls;
use vector::{ByteViews, LogicalType, Values, Vector, VectorBuilder, concat};

use super::affinity::{Affinity, as_real, whole};
use super::kind::{Kind, get_mixed, put_mixed};
use crate::api::{Argument, Class, Error, Result, Value};

/// Integers up to this size are reals without loss.
const EXACT: u64 = 1 << 53;

/// Collects values. The kind follows from what comes: a column begins with the kind of its first value, and
/// what was collected moves to another kind where a value does not fit.
pub struct ColumnBuilder {
    affinity: Affinity,
    /// None as long as all values are NULL.
    kind: Option<Kind>,
    /// Every integer so far is a real without loss.
    exact: bool,
    values: VectorBuilder,
    room: Vec<u8>,
}

impl ColumnBuilder {
    /// No values, of a column of this affinity.
    pub fn new(affinity: Affinity) -> Self {
        let values = VectorBuilder::new(LogicalType::Int64);
        Self { affinity, kind: None, exact: true, values, room: Vec::new() }
    }

    /// Memory that the values take, about.
    pub const fn bytes(&self) -> usize {
        self.values.bytes()
    }

    /// Adds a value as SQLite gives it, and applies the affinity.
    ///
    /// What it leaves as it is goes to its place at once. To make a `Value` of each number first, and read
    /// that again, took a tenth of a load: the processor waits for what was just written in two parts.
    #[inline]
    pub fn push_given(&mut self, given: Argument<'_>) -> Result<()> {
        let added = match (given.class(), self.kind, self.affinity) {
            (Class::Integer, Some(Kind::Integer), Affinity::Numeric | Affinity::Blob) => {
                let integer = given.integer();
                self.exact &= is_exact(integer);
                self.values.push_i64(integer)
            }
            (Class::Real, Some(Kind::Real), Affinity::Real | Affinity::Blob) => {
                self.values.push_f64(given.real())
            }
            (Class::Text, Some(Kind::Text), Affinity::Text | Affinity::Blob) => {
                self.values.push_bytes(given.text())
            }
            _ => false,
        };
        if added { Ok(()) } else { self.push(self.affinity.apply(given)) }
    }

    /// Adds a value, to which the affinity was applied.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) -> Result<()> {
        let fits = match (self.kind, value) {
            (_, Value::Null) => {
                self.values.push_null();
                true
            }
            (Some(Kind::Integer), Value::Integer(integer)) => {
                self.exact &= is_exact(integer);
                self.values.push_i64(integer)
            }
            (Some(Kind::Real | Kind::Number), Value::Real(real)) => self.values.push_f64(real),
            (Some(Kind::Number), Value::Integer(integer)) if is_exact(integer) => {
                self.values.push_f64(as_real(integer))
            }
            (Some(Kind::Text), Value::Text(text)) => self.values.push_bytes(text),
            (Some(Kind::Mixed), value) => {
                put_mixed(value, &mut self.room);
                self.values.push_bytes(&self.room)
            }
            _ => {
                self.widen(value)?;
                return self.push(value);
            }
        };
        if fits { Ok(()) } else { Err(Error::new("a value past 4 GiB")) }
    }

    /// Chooses a kind that has room for this value as well.
    fn widen(&mut self, value: Value<'_>) -> Result<()> {
        let alone = match value {
            Value::Integer(_) => Kind::Integer,
            Value::Real(_) => Kind::Real,
            Value::Text(_) => Kind::Text,
            Value::Null | Value::Blob(_) => Kind::Mixed,
        };
        let numeric = self.affinity == Affinity::Numeric;
        let kind = match (self.kind, value) {
            (None, _) => alone,
            (Some(Kind::Integer), Value::Real(_)) if numeric && self.exact => Kind::Number,
            (Some(Kind::Real), Value::Integer(integer)) if numeric && is_exact(integer) => Kind::Number,
            _ => Kind::Mixed,
        };
        let mut wider = VectorBuilder::new(kind.logical());
        let old = std::mem::replace(&mut self.values, VectorBuilder::new(kind.logical()));
        let old = Column::new(self.kind.unwrap_or(Kind::Null), old.finish(&|_, _, _| Box::default()));
        for row in 0..old.vector.len() {
            match (kind, old.get(row)?) {
                (_, Value::Null) => wider.push_null(),
                (Kind::Number, Value::Integer(integer)) => _ = wider.push_f64(as_real(integer)),
                (Kind::Number, Value::Real(real)) => _ = wider.push_f64(real),
                (_, value) => {
                    put_mixed(value, &mut self.room);
                    wider.push_bytes(&self.room);
                }
            }
        }
        self.values = wider;
        self.kind = Some(kind);
        Ok(())
    }

    /// The values.
    pub fn finish(self) -> Column {
        let kind = self.kind.unwrap_or(Kind::Null);
        Column::new(kind, self.values.finish(&|_, _, _| Box::default()))
    }
}

/// Whether an integer is a real without loss.
pub const fn is_exact(integer: i64) -> bool {
    integer.unsigned_abs() <= EXACT
}

/// Values of one column, of one kind.
#[derive(Debug, Clone)]
pub struct Column {
    /// How they lie.
    pub kind: Kind,
    /// The values: flat.
    pub vector: Vector,
}

/// The values of a vector in one of another type: integers as reals, and a column without values as NULLs.
pub fn cast(vector: &Vector, logical: LogicalType) -> Vector {
    if vector.logical == logical {
        return vector.clone();
    }
    let flat = vector.clone().flatten();
    match (&flat.values, logical) {
        (Values::Int64(values), LogicalType::Float64) => {
            let values = Values::Float64(values.iter().map(|&value| as_real(value)).collect());
            Vector { logical, validity: flat.validity, values }
        }
        _ => nulls(logical, flat.len()).flatten(),
    }
}

static NO_BYTES: &[u8] = &[];

impl Column {
    /// Values that were decoded, or built. They are made flat, as single ones are going to be asked for.
    pub fn new(kind: Kind, vector: Vector) -> Self {
        Self { kind, vector: vector.flatten() }
    }

    /// Columns of this affinity end to end. Where their kinds differ, the kind is chosen by the values.
    pub fn joined(parts: Vec<Self>, affinity: Affinity) -> Result<Self> {
        let kind = parts.first().map_or(Kind::Null, |part| part.kind);
        if parts.iter().all(|part| part.kind == kind) {
            let vectors = parts.into_iter().map(|part| part.vector).collect();
            return Ok(Self::new(kind, concat(kind.logical(), vectors)?));
        }
        let mut builder = ColumnBuilder::new(affinity);
        for part in &parts {
            for row in 0..part.vector.len() {
                builder.push(part.get(row)?)?;
            }
        }
        Ok(builder.finish())
    }

    /// Blobs: the bytes of each value.
    pub fn of_blobs(bytes: &Vector) -> Result<Self> {
        let Values::Bytes(views) = &bytes.values else { return Err(Error::new("blobs are bytes")) };
        let mut builder = ColumnBuilder::new(Affinity::Blob);
        for row in 0..bytes.len() {
            builder.push(if bytes.is_valid(row) { Value::Blob(views.get(row)) } else { Value::Null })?;
        }
        Ok(builder.finish())
    }

    /// The bytes of each blob. NULL for what is none.
    pub fn blobs(&self) -> Result<Vector> {
        let mut builder = VectorBuilder::new(LogicalType::Bytes);
        for row in 0..self.vector.len() {
            match self.get(row)? {
                Value::Blob(blob) => _ = builder.push_bytes(blob),
                _ => builder.push_null(),
            }
        }
        Ok(builder.finish(&|_, _, _| Box::default()))
    }

    /// The value of a row.
    #[inline]
    pub fn get(&self, row: usize) -> Result<Value<'_>> {
        if self.vector.validity.as_ref().is_some_and(|validity| !validity.get(row)) {
            return Ok(Value::Null);
        }
        Ok(match (self.kind, &self.vector.values) {
            (Kind::Integer, Values::Int64(values)) => {
                Value::Integer(values.get(row).copied().unwrap_or_default())
            }
            (Kind::Real, Values::Float64(values)) => {
                Value::Real(values.get(row).copied().unwrap_or_default())
            }
            (Kind::Number, Values::Float64(values)) => {
                let real = values.get(row).copied().unwrap_or_default();
                whole(real).map_or(Value::Real(real), Value::Integer)
            }
            (Kind::Text, Values::Bytes(views)) => Value::Text(bytes(views, row)),
            (Kind::Mixed, Values::Bytes(views)) => get_mixed(bytes(views, row))?,
            _ => return Err(Error::corrupt("a column of another type than the directory says")),
        })
    }
}

fn bytes(views: &ByteViews, row: usize) -> &[u8] {
    if row < views.len() { views.get(row) } else { NO_BYTES }
}
