//! Vectors back into Datums: a whole batch of one column at a time, or single rows.
//!
//! A scan or fetch has one `ColumnReader` for each column. Values that need memory are built in its arena and
//! stay valid until [`ColumnReader::reset`]. The caller calls that once no slot refers to the batch any more.
//!
//! An entry of a dictionary is built when a row first needs it, and kept as long as the same dictionary
//! comes. A constant is built once. Length words are four bytes on an aligned border, unless the type's
//! functions take short ones without a copy.
//!
//! Invariant: the values equal those that `from_datum` was given, detoasted.

use encodings::Single;
use pgrx::pg_sys::Datum;
use server_bytes::numeric;
use vector::{Decimal, Dictionary, NumericInts, NumericValues, Selection, Values, Vector};

use super::arena::Arena;
use super::type_map::{ColumnType, Shape};

/// If there are fewer rows than one for this many entries of a dictionary, values are built row by row and no
/// entry is kept.
const FEW: usize = 16;
/// The longest payload that a one-byte length word can announce (127 with the word itself).
const SHORT_PAYLOAD: usize = 126;

/// One value of a column of this type, and whether it is NULL. For a NULL the Datum is zero.
pub fn single_datum(arena: &mut Arena, kind: &ColumnType, value: Single<'_>) -> (Datum, bool) {
    let by_value = matches!(kind.shape, Shape::ByValue(_));
    let built = match value {
        Single::Bool(v) if by_value => Some(Datum::from(usize::from(v))),
        Single::Int(v) if kind.shape == Shape::Unsigned => Some(Datum::from(vector::unsigned(v))),
        Single::Int(v) if by_value => Some(Datum::from(v as isize)),
        Single::Float32(v) if by_value => Some(Datum::from(v.to_bits().cast_signed() as isize)),
        Single::Float64(v) if by_value => Some(Datum::from(v.to_bits())),
        Single::Numeric { unscaled, scale, display } if matches!(kind.shape, Shape::Varlena { .. }) => {
            Some(decimal_datum(arena, Decimal { unscaled: unscaled.into(), scale, display }))
        }
        Single::Bytes(bytes) => bytes_datum(arena, kind.shape, bytes),
        Single::Of(vector, row) => one(arena, kind.shape, vector, row),
        _ => None,
    };
    (built.unwrap_or(Datum::null()), built.is_none())
}

/// Turns vectors of one column into Datums.
pub struct ColumnReader {
    kind: ColumnType,
    arena: Arena,
    /// The dictionaries seen since the last reset. The one that was used last is at the end.
    dictionaries: Vec<CachedDictionary>,
}

struct CachedDictionary {
    id: u64,
    arena: Arena,
    /// For each entry its Datum, once it was built.
    entries: Vec<Option<Datum>>,
}

impl ColumnReader {
    /// A reader for a column of this type.
    pub const fn new(kind: ColumnType) -> Self {
        Self { kind, arena: Arena::new(), dictionaries: Vec::new() }
    }

    /// The column's type.
    pub const fn kind(&self) -> &ColumnType {
        &self.kind
    }

    /// Forgets every Datum that was handed out. Only the dictionary that was used last stays cached.
    #[inline]
    pub fn reset(&mut self) {
        self.arena.reset();
        if self.dictionaries.len() > 1 {
            let keep = self.dictionaries.len() - 1;
            self.dictionaries.drain(..keep);
        }
    }

    /// Puts the values of the selected rows, in order, into the first `rows.len()` places of both slices.
    /// Returns how many these are. For a NULL the Datum is zero. Stops at the end of the shorter slice.
    pub fn datums(
        &mut self,
        vector: &Vector,
        rows: &Selection,
        out_values: &mut [Datum],
        out_nulls: &mut [bool],
    ) -> usize {
        match rows {
            Selection::All(len) => self.fill(vector, 0..*len as usize, out_values, out_nulls),
            Selection::Rows(rows) => {
                self.fill(vector, rows.iter().map(|&row| row as usize), out_values, out_nulls)
            }
        }
    }

    /// Does what [`Self::datums`] does, for the rows `range`, ascending.
    pub fn datums_in(
        &mut self,
        vector: &Vector,
        range: std::ops::Range<usize>,
        out_values: &mut [Datum],
        out_nulls: &mut [bool],
    ) -> usize {
        self.fill(vector, range, out_values, out_nulls)
    }

    fn fill(
        &mut self,
        vector: &Vector,
        rows: impl Iterator<Item = usize> + Clone,
        out_values: &mut [Datum],
        out_nulls: &mut [bool],
    ) -> usize {
        let count = match &vector.values {
            Values::Constant(value, _) => {
                let built =
                    if value.is_valid(0) { build(&mut self.arena, self.kind.shape, value, 0) } else { None };
                let mut count = 0;
                for ((_, out), null) in rows.clone().zip(out_values.iter_mut()).zip(out_nulls.iter_mut()) {
                    *out = built.unwrap_or(Datum::null());
                    *null = built.is_none();
                    count += 1;
                }
                count
            }
            Values::Dictionary { codes, dictionary }
                if out_values.len() * FEW < dictionary.entries.len() && !self.knows(dictionary) =>
            {
                let mut count = 0;
                for ((row, out), null) in rows.clone().zip(out_values.iter_mut()).zip(out_nulls.iter_mut()) {
                    let code = codes.get(row).map_or(usize::MAX, |&code| code as usize);
                    let value = match code < dictionary.entries.len() {
                        true => build(&mut self.arena, self.kind.shape, &dictionary.entries, code),
                        false => None,
                    };
                    *out = value.unwrap_or(Datum::null());
                    *null = value.is_none();
                    count += 1;
                }
                count
            }
            Values::Dictionary { codes, dictionary } => {
                let shape = self.kind.shape;
                let cache = self.dictionary(dictionary);
                let mut count = 0;
                for ((row, out), null) in rows.clone().zip(out_values.iter_mut()).zip(out_nulls.iter_mut()) {
                    // A NULL row may carry any code.
                    let code = codes.get(row).map_or(usize::MAX, |&code| code as usize);
                    let value = match cache.entries.get_mut(code) {
                        Some(Some(value)) => Some(*value),
                        Some(empty) => {
                            *empty = build(&mut cache.arena, shape, &dictionary.entries, code);
                            *empty
                        }
                        None => None,
                    };
                    *out = value.unwrap_or(Datum::null());
                    *null = value.is_none();
                    count += 1;
                }
                count
            }
            Values::Runs { ends, values } => {
                let mut run = 0usize;
                let mut built: Option<(usize, Option<Datum>)> = None;
                let mut count = 0;
                for ((row, out), null) in rows.clone().zip(out_values.iter_mut()).zip(out_nulls.iter_mut()) {
                    while ends.get(run).is_some_and(|&end| end as usize <= row) {
                        run += 1;
                    }
                    let value = match built {
                        Some((of, value)) if of == run => value,
                        _ if values.is_valid(run) => build(&mut self.arena, self.kind.shape, values, run),
                        _ => None,
                    };
                    built = Some((run, value));
                    *out = value.unwrap_or(Datum::null());
                    *null = value.is_none();
                    count += 1;
                }
                count
            }
            _ => {
                let count = self.flat(vector, rows.clone(), out_values);
                out_nulls.iter_mut().take(count).for_each(|null| *null = false);
                count
            }
        };
        if let Some(validity) = &vector.validity {
            for ((row, out), null) in rows.zip(out_values.iter_mut()).zip(out_nulls.iter_mut()).take(count) {
                if !validity.get(row) {
                    *out = Datum::null();
                    *null = true;
                }
            }
        }
        count
    }

    /// Builds the values of a flat vector without looking at NULLs (the value there is unspecified but
    /// present).
    fn flat(&mut self, vector: &Vector, rows: impl Iterator<Item = usize>, out: &mut [Datum]) -> usize {
        fn each(
            rows: impl Iterator<Item = usize>,
            out: &mut [Datum],
            value: impl Fn(usize) -> Datum,
        ) -> usize {
            let mut count = 0;
            for (row, out) in rows.zip(out) {
                *out = value(row);
                count += 1;
            }
            count
        }
        // The usual widths are copied without a dispatch for each value, all others one by one.
        match (&vector.values, self.kind.shape) {
            (Values::Int16(v), Shape::ByValue(_)) => {
                each(rows, out, |row| Datum::from(isize::from(v.get(row).copied().unwrap_or(0))))
            }
            (Values::Int32(v), Shape::ByValue(_)) => {
                each(rows, out, |row| Datum::from(v.get(row).copied().unwrap_or(0) as isize))
            }
            (Values::Int64(v), Shape::Unsigned) => {
                each(rows, out, |row| Datum::from(vector::unsigned(v.get(row).copied().unwrap_or(0))))
            }
            (Values::Int64(v), Shape::ByValue(_)) => {
                each(rows, out, |row| Datum::from(v.get(row).copied().unwrap_or(0) as isize))
            }
            (Values::Float32(v), Shape::ByValue(_)) => each(rows, out, |row| {
                Datum::from(v.get(row).map_or(0, |f| f.to_bits().cast_signed()) as isize)
            }),
            (Values::Float64(v), Shape::ByValue(_)) => {
                each(rows, out, |row| Datum::from(v.get(row).map_or(0, |f| f.to_bits())))
            }
            (Values::Bool(v), Shape::ByValue(_)) => {
                each(rows, out, |row| Datum::from(usize::from(v.get(row))))
            }
            (Values::Bytes(v), Shape::Varlena { short, .. }) => {
                let mut count = 0;
                for (row, out) in rows.zip(out) {
                    *out = varlena(&mut self.arena, v.get(row), short);
                    count += 1;
                }
                count
            }
            (Values::Numeric(v), Shape::Varlena { .. }) => {
                let mut count = 0;
                for (row, out) in rows.zip(out) {
                    *out = numeric_datum(&mut self.arena, v, row);
                    count += 1;
                }
                count
            }
            (_, shape) => {
                let mut count = 0;
                for (row, out) in rows.zip(out) {
                    *out = build(&mut self.arena, shape, vector, row).unwrap_or(Datum::null());
                    count += 1;
                }
                count
            }
        }
    }

    fn knows(&self, dictionary: &Dictionary) -> bool {
        self.dictionaries.iter().any(|cached| cached.id == dictionary.id)
    }

    fn dictionary(&mut self, dictionary: &Dictionary) -> &mut CachedDictionary {
        match self.dictionaries.iter().position(|cached| cached.id == dictionary.id) {
            Some(at) => {
                let cached = self.dictionaries.remove(at);
                self.dictionaries.push(cached);
            }
            None => self.dictionaries.push(CachedDictionary {
                id: dictionary.id,
                arena: Arena::new(),
                entries: vec![None; dictionary.entries.len()],
            }),
        }
        let last = self.dictionaries.len() - 1;
        &mut self.dictionaries[last]
    }
}

/// One value of any vector. None stands for NULL.
fn one(arena: &mut Arena, shape: Shape, vector: &Vector, row: usize) -> Option<Datum> {
    if vector.validity.as_ref().is_some_and(|validity| !validity.get(row)) {
        return None;
    }
    match &vector.values {
        Values::Constant(value, _) => one(arena, shape, value, 0),
        Values::Dictionary { codes, dictionary } => {
            let code = usize::try_from(*codes.get(row)?).ok()?;
            (code < dictionary.entries.len())
                .then(|| build(arena, shape, &dictionary.entries, code))
                .flatten()
        }
        Values::Runs { ends, values } => {
            one(arena, shape, values, ends.partition_point(|&end| end as usize <= row))
        }
        _ => build(arena, shape, vector, row),
    }
}

/// One value of a flat vector. None if vector and column do not fit, which no stripe of the table can cause.
fn build(arena: &mut Arena, shape: Shape, vector: &Vector, row: usize) -> Option<Datum> {
    let by_value = matches!(shape, Shape::ByValue(_));
    Some(match &vector.values {
        Values::Bool(v) if by_value => Datum::from(usize::from(v.get(row))),
        Values::Int16(v) if by_value => Datum::from(isize::from(*v.get(row)?)),
        Values::Int32(v) if by_value => Datum::from(*v.get(row)? as isize),
        Values::Int64(v) if shape == Shape::Unsigned => Datum::from(vector::unsigned(*v.get(row)?)),
        Values::Int64(v) if by_value => Datum::from(*v.get(row)? as isize),
        Values::Float32(v) if by_value => Datum::from(v.get(row)?.to_bits().cast_signed() as isize),
        Values::Float64(v) if by_value => Datum::from(v.get(row)?.to_bits()),
        Values::Fixed(v) => return bytes_datum(arena, shape, v.get(row)),
        Values::Bytes(v) => return bytes_datum(arena, shape, v.get(row)),
        Values::Numeric(v) if matches!(shape, Shape::Varlena { .. }) => numeric_datum(arena, v, row),
        _ => return None,
    })
}

/// The value of these bytes: a byte string, or a value of fixed width. `None` for a number.
fn bytes_datum(arena: &mut Arena, shape: Shape, bytes: &[u8]) -> Option<Datum> {
    Some(match shape {
        Shape::Varlena { short, .. } => varlena(arena, bytes, short),
        Shape::Fixed(width) => padded(arena, bytes, usize::from(width)),
        Shape::CString => padded(arena, bytes, bytes.len() + 1),
        Shape::ByValue(_) => sign_extended(bytes),
        Shape::Unsigned => return None,
    })
}

/// Little-endian bytes of a by-value type as the server fetches them from a tuple.
fn sign_extended(bytes: &[u8]) -> Datum {
    let mut wide = match bytes.last() {
        Some(last) if last & 0x80 != 0 => [0xFF; 8],
        _ => [0; 8],
    };
    for (to, from) in wide.iter_mut().zip(bytes) {
        *to = *from;
    }
    Datum::from(u64::from_le_bytes(wide))
}

/// `bytes` followed by zeros up to `width`.
fn padded(arena: &mut Arena, bytes: &[u8], width: usize) -> Datum {
    let len = bytes.len().min(width);
    let place = arena.allocate(width);
    // SAFETY: the arena gave room for `width` bytes, of which `len` are copied and the rest cleared.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, len);
        std::ptr::write_bytes(place.add(len), 0, width - len);
    }
    Datum::from(place)
}

#[inline]
fn varlena(arena: &mut Arena, bytes: &[u8], short: bool) -> Datum {
    if short && bytes.len() <= SHORT_PAYLOAD {
        let place = arena.allocate(bytes.len() + 1);
        // SAFETY: the arena gave room for the length byte and the payload.
        unsafe {
            pgrx::varlena::set_varsize_1b(place.cast(), bytes.len() as i32 + 1);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.add(1), bytes.len());
        }
        return Datum::from(place);
    }
    let place = arena.allocate(bytes.len() + 4);
    // SAFETY: the arena gave room for the length word and the payload; values are below 1 GB, as the server
    // made them.
    unsafe {
        pgrx::varlena::set_varsize_4b(place.cast(), bytes.len() as i32 + 4);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.add(4), bytes.len());
    }
    Datum::from(place)
}

#[inline]
fn numeric_datum(arena: &mut Arena, values: &NumericValues, row: usize) -> Datum {
    if !values.side.is_empty()
        && let Some(bytes) = values.side_value(row)
    {
        return varlena(arena, bytes, false);
    }
    let unscaled = match &values.ints {
        NumericInts::Int32(v) => i128::from(v.get(row).copied().unwrap_or(0)),
        NumericInts::Int64(v) => i128::from(v.get(row).copied().unwrap_or(0)),
        NumericInts::Int128(v) => v.get(row).copied().unwrap_or(0),
    };
    decimal_datum(arena, Decimal { unscaled, scale: values.scale, display: values.display.get(row) })
}

#[inline]
fn decimal_datum(arena: &mut Arena, decimal: Decimal) -> Datum {
    let mut payload = [0; numeric::MAX_ENCODED];
    let len = numeric::encode(decimal, &mut payload);
    varlena(arena, payload.get(..len).unwrap_or(&payload), false)
}
