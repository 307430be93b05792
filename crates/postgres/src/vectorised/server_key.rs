//! Numbers that stand for values of types whose equality or order only the server knows: arrays, jsonb, inet,
//! interval, enum, ranges, text under non-deterministic collations.
//!
//! Made by `translate::keys`; operators then group, join and sort by the numbers. Every different byte string
//! gets a number (`query`'s `Numbering`). The type's hash and equality functions see it once. If its value
//! equals an earlier one, the earlier number stands for both. The type's comparison function compares two
//! numbers. Once it was called often, all numbers are put in its order and get ranks; from then on ranks are
//! compared. A sort makes enough comparisons for ranks to pay, a top-N does not.
//!
//! Invariant: all of it happens on the main thread; a number keeps its meaning, and two numbers their order,
//! as long as the node lives.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pgrx::pg_sys::{self, Datum, Oid};
use query::row_container::Numbering;
use query::{HostFunction, TextOrder};
use vector::{ByteViews, LogicalType, Values, Vector};

use crate::convert::{ColumnReader, ColumnType};
use crate::expressions::aggregate::copied;
use crate::vectorised::node::operator_memory;

/// Values between two resets of the memory that functions work in.
const ROWS: usize = 256;
/// Comparisons between two looks for interrupts.
const COMPARISONS: usize = 4096;
/// Bytes that a number takes beside its value, roughly.
const ENTRY: usize = 96;
/// Comparisons of values, for each of them, before they get ranks.
const PATIENCE: usize = 4;

/// Bytes that a value of a type and its number take, roughly: the value is kept twice, and so is its place.
pub fn bytes_of(type_oid: Oid) -> f64 {
    const PLACES: usize = 80;
    // SAFETY: a catalog look-up.
    let width = unsafe { pg_sys::get_typavgwidth(type_oid, -1) };
    (ENTRY + PLACES) as f64 + 2.0 * f64::from(width)
}

/// The server's data about a type.
#[derive(Clone, Copy)]
struct Class {
    kind: ColumnType,
    collation: Oid,
    entry: *mut pg_sys::TypeCacheEntry,
    by_value: bool,
    length: i16,
    /// The data that lives as long as the node.
    memory: pg_sys::MemoryContext,
}

/// The values of one type and collation that a node has met.
pub struct Numbers {
    class: Class,
    known: Mutex<Known>,
}
// SAFETY: the pointers are used on the main thread only (`needs_host` of the keys), and dropping them frees
// nothing of the server's.
unsafe impl Send for Numbers {}
// SAFETY: what is shared is behind a lock, and the pointers are used on the main thread only.
unsafe impl Sync for Numbers {}

struct Known {
    /// The number of each byte string, and of NULL.
    numbers: Numbering,
    /// By number.
    values: Vec<Met>,
    /// The last number with this hash whose value equals no earlier one.
    hashed: HashMap<u32, u32>,
    memory: Option<Memory>,
    ranks: Ranks,
    /// Comparisons of values since there were ranks.
    compared: usize,
}

/// The facts known about a number.
#[derive(Clone, Copy)]
struct Met {
    /// The value, a copy of the server's; None for NULL.
    value: Option<Datum>,
    /// The first number whose value equals it.
    first: u32,
    /// The one before it in `hashed`; itself where there is none.
    before: u32,
}

/// The memory that keeps values, and the memory that functions work in.
#[derive(Clone, Copy)]
struct Memory {
    values: pg_sys::MemoryContext,
    work: pg_sys::MemoryContext,
}

/// The order of the numbers there are so far.
#[derive(Default)]
struct Ranks {
    /// Numbers in the order of their values.
    sorted: Vec<u32>,
    /// The rank of each number; equal values have the same.
    of: Vec<u32>,
}

impl Numbers {
    /// For values of a type; None where the server has no functions of its own for it.
    ///
    /// # Safety
    /// Inside a transaction; the current memory outlives the result.
    pub unsafe fn new(type_oid: Oid, collation: Oid) -> Option<Arc<Self>> {
        let flags = pg_sys::TYPECACHE_EQ_OPR_FINFO
            | pg_sys::TYPECACHE_HASH_PROC_FINFO
            | pg_sys::TYPECACHE_CMP_PROC_FINFO;
        // SAFETY: catalog look-ups; an entry lives as long as the process.
        unsafe {
            let kind = ColumnType::of_type(type_oid);
            if !matches!(kind.logical, LogicalType::Text | LogicalType::Bytes | LogicalType::FixedBytes(_)) {
                return None;
            }
            let entry = pg_sys::lookup_type_cache(type_oid, flags as i32);
            let (mut length, mut by_value) = (0, false);
            pg_sys::get_typlenbyval(type_oid, &raw mut length, &raw mut by_value);
            let memory = pg_sys::CurrentMemoryContext;
            let class = Class { kind, collation, entry, by_value, length, memory };
            let known = Known {
                numbers: Numbering::new(&[kind.logical], 0),
                values: Vec::new(),
                hashed: HashMap::new(),
                memory: None,
                ranks: Ranks::default(),
                compared: 0,
            };
            Some(Arc::new(Self { class, known: Mutex::new(known) }))
        }
    }

    /// Whether these are the numbers of a type under a collation.
    pub fn are_of(&self, type_oid: Oid, collation: Oid) -> bool {
        self.class.kind.type_oid == type_oid && self.class.collation == collation
    }

    /// True where the type has an equality and a hash that goes with it.
    pub fn have_equality(&self) -> bool {
        // SAFETY: the entry lives as long as the process.
        let entry = unsafe { &*self.class.entry };
        let built_in = |oid: Oid| oid != Oid::INVALID && oid.to_u32() < pg_sys::FirstNormalObjectId;
        built_in(entry.eq_opr_finfo.fn_oid) && built_in(entry.hash_proc_finfo.fn_oid)
    }

    /// True where the type has an order.
    pub fn have_order(&self) -> bool {
        // SAFETY: the entry lives as long as the process.
        let compare = unsafe { (*self.class.entry).cmp_proc_finfo.fn_oid };
        compare != Oid::INVALID && compare.to_u32() < pg_sys::FirstNormalObjectId
    }

    /// The order of values by their numbers, as `Ordered` writes them.
    pub fn order(self: &Arc<Self>) -> TextOrder {
        let numbers = Arc::clone(self);
        TextOrder::Host(Arc::new(move |a, b| numbers.compare(a, b)))
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes);
        let (a, b) = (number(a), number(b));
        if a == b {
            return Ordering::Equal;
        }
        // An ERROR of the server's comes out of the comparison as a panic and ends the query. No later code
        // sees the unfinished state.
        let Ok(mut known) = self.known.lock() else { return Ordering::Equal };
        // SAFETY: the main thread, as whoever sorts by numbers has made them there.
        unsafe { known.compare(self.class, a, b) }
    }

    /// The number of each of these values.
    fn of(&self, values: &Arc<Vector>, rows: usize) -> query::Result<Vec<u32>> {
        let mut known = self.known.lock().map_err(|_| query::Error::Decline("numbers in use"))?;
        let known = &mut *known;
        let mut numbers = Vec::new();
        known.numbers.number(std::slice::from_ref(values), rows, &mut numbers)?;
        // The server has a copy of each value.
        if known.numbers.bytes() * 2 + known.numbers.len() * ENTRY > operator_memory() {
            return Err(query::Error::Decline(
                "values of a type that only the server compares, past the memory",
            ));
        }
        let fresh = known.numbers.fresh();
        if !fresh.is_empty() {
            let names: Vec<u32> =
                fresh.iter().filter_map(|&row| numbers.get(row as usize).copied()).collect();
            let met = values.take(fresh);
            // SAFETY: the main thread (`needs_host`), inside a running node.
            unsafe { known.meet(self.class, &names, &met) };
        }
        for number in &mut numbers {
            *number = known.values.get(*number as usize).map_or(0, |met| met.first);
        }
        Ok(numbers)
    }
}

impl Known {
    /// The memory that values are kept in, made when it is first asked for.
    ///
    /// # Safety
    /// On the main thread, while the node lives.
    unsafe fn memory(&mut self, class: Class) -> Memory {
        *self.memory.get_or_insert_with(|| {
            // SAFETY: the main thread; the parent lives as long as the node.
            let new = |name: &std::ffi::CStr| unsafe {
                pg_sys::AllocSetContextCreateExtended(
                    class.memory,
                    name.as_ptr(),
                    pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                )
            };
            Memory { values: new(c"colonnade key values"), work: new(c"colonnade key functions") }
        })
    }

    /// Takes values that were not met before, and their numbers.
    ///
    /// # Safety
    /// On the main thread, inside a running node; values of this class.
    unsafe fn meet(&mut self, class: Class, names: &[u32], fresh: &Vector) {
        let mut reader = ColumnReader::new(class.kind);
        let (mut datums, mut nulls) = (vec![Datum::null(); fresh.len()], vec![true; fresh.len()]);
        reader.datums_in(fresh, 0..fresh.len(), &mut datums, &mut nulls);
        self.values.resize(self.numbers.len(), Met { value: None, first: 0, before: 0 });
        // SAFETY: the main thread; the entry lives as long as the process. Calls of the server's are guarded
        // each for itself.
        unsafe {
            let memory = self.memory(class);
            let previous = pg_sys::CurrentMemoryContext;
            for (at, (&number, &datum)) in names.iter().zip(&datums).enumerate() {
                let mut met = Met { value: None, first: number, before: number };
                if nulls.get(at) == Some(&false) {
                    pg_sys::MemoryContextSwitchTo(memory.values);
                    let value =
                        pg_sys::ffi::pg_guard_ffi_boundary(|| copied(datum, class.by_value, class.length));
                    pg_sys::MemoryContextSwitchTo(memory.work);
                    met = self.first_of(class, number, value);
                }
                if let Some(place) = self.values.get_mut(number as usize) {
                    *place = met;
                }
                if at % ROWS == ROWS - 1 {
                    pg_sys::MemoryContextReset(memory.work);
                    pgrx::check_for_interrupts!();
                }
            }
            pg_sys::MemoryContextSwitchTo(previous);
            pg_sys::MemoryContextReset(memory.work);
        }
    }

    /// Compares the value of a new number with the values met before. The result says which number was the
    /// first with an equal value; without an equal one it is the number itself.
    ///
    /// # Safety
    /// As `meet`, for one value.
    unsafe fn first_of(&mut self, class: Class, number: u32, value: Datum) -> Met {
        let mut met = Met { value: Some(value), first: number, before: number };
        let entry = class.entry;
        // SAFETY: the main thread, and values of this class. The functions are those that the type cache has
        // looked up.
        unsafe {
            if (*entry).hash_proc_finfo.fn_oid == Oid::INVALID {
                return met;
            }
            let hash = &raw mut (*entry).hash_proc_finfo;
            let hash = pg_sys::FunctionCall1Coll(hash, class.collation, value).value() as u32;
            let mut next = self.hashed.get(&hash).copied();
            while let Some((at, other)) = next.and_then(|at| Some((at, *self.values.get(at as usize)?))) {
                let equal = &raw mut (*entry).eq_opr_finfo;
                if let Some(other) = other.value
                    && pg_sys::FunctionCall2Coll(equal, class.collation, other, value).value() != 0
                {
                    met.first = at;
                    return met;
                }
                next = (other.before != at).then_some(other.before);
            }
            if let Some(before) = self.hashed.insert(hash, number) {
                met.before = before;
            }
            met
        }
    }

    /// The order of two first numbers.
    ///
    /// # Safety
    /// On the main thread; numbers of this class.
    unsafe fn compare(&mut self, class: Class, a: u32, b: u32) -> Ordering {
        let rank = |ranks: &Ranks, number: u32| ranks.of.get(number as usize).copied();
        if let (Some(a), Some(b)) = (rank(&self.ranks, a), rank(&self.ranks, b)) {
            return a.cmp(&b);
        }
        // SAFETY: the main thread; calls of the server's are guarded each for itself.
        unsafe {
            if self.compared >= PATIENCE * self.values.len() {
                self.compared = 0;
                self.rank(class);
                return rank(&self.ranks, a).cmp(&rank(&self.ranks, b));
            }
            let memory = self.memory(class);
            let before = pg_sys::MemoryContextSwitchTo(memory.work);
            let order = compare_values(&self.values, class, a, b);
            pg_sys::MemoryContextSwitchTo(before);
            self.compared += 1;
            if self.compared.is_multiple_of(COMPARISONS) {
                pgrx::check_for_interrupts!();
                pg_sys::MemoryContextReset(memory.work);
            }
            order
        }
    }

    /// Gives every number its rank.
    ///
    /// # Safety
    /// As `compare`.
    unsafe fn rank(&mut self, class: Class) {
        if self.ranks.of.len() == self.values.len() {
            return;
        }
        // SAFETY: the main thread.
        let (memory, before) = unsafe {
            let memory = self.memory(class);
            (memory, pg_sys::MemoryContextSwitchTo(memory.work))
        };
        let values = &self.values;
        let mut count = 0_usize;
        let compare = |a: u32, b: u32| {
            count += 1;
            // SAFETY: the main thread; calls of the server's are guarded each for itself. Nothing in the
            // memory is looked at any more.
            unsafe {
                if count.is_multiple_of(COMPARISONS) {
                    pgrx::check_for_interrupts!();
                    pg_sys::MemoryContextReset(memory.work);
                }
                compare_values(values, class, a, b)
            }
        };
        // SAFETY: the entry lives as long as the process.
        let hashed = unsafe { (*class.entry).hash_proc_finfo.fn_oid } != Oid::INVALID;
        self.ranks = std::mem::take(&mut self.ranks).with(values, hashed, compare);
        // SAFETY: the main thread; what was current.
        unsafe {
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::MemoryContextReset(memory.work);
        }
    }
}

impl Ranks {
    /// The ranks of these numbers. New numbers are put among the numbers that have a rank. `hashed`: the type
    /// has a hash function, so different first numbers have different values.
    fn with(self, values: &[Met], hashed: bool, mut compare: impl FnMut(u32, u32) -> Ordering) -> Self {
        // The new numbers in order, then each put among those before it. Only first ones are asked for.
        let is_first = |number: &u32| {
            values.get(*number as usize).is_some_and(|met| met.value.is_some() && met.first == *number)
        };
        let fresh = self.of.len() as u32..values.len() as u32;
        let mut fresh: Vec<u32> = fresh.filter(is_first).collect();
        fresh.sort_by(|&a, &b| compare(a, b));
        let mut sorted = Vec::with_capacity(values.len());
        let mut rest = self.sorted.as_slice();
        for number in fresh {
            let place = rest.partition_point(|&other| compare(other, number).is_lt());
            let (less, others) = rest.split_at(place);
            sorted.extend_from_slice(less);
            sorted.push(number);
            rest = others;
        }
        sorted.extend_from_slice(rest);
        let mut ranks = vec![0; values.len()];
        let mut rank = 0;
        for pair in sorted.windows(2) {
            let &[a, b] = pair else { continue };
            if hashed || compare(a, b).is_ne() {
                rank += 1;
            }
            if let Some(place) = ranks.get_mut(b as usize) {
                *place = rank;
            }
        }
        Self { sorted, of: ranks }
    }
}

/// The order of the values of two numbers.
///
/// # Safety
/// On the main thread; numbers of this class.
unsafe fn compare_values(values: &[Met], class: Class, a: u32, b: u32) -> Ordering {
    let value = |at: u32| values.get(at as usize).and_then(|met| met.value).unwrap_or_else(Datum::null);
    // SAFETY: the main thread; the function is that which the type cache has looked up.
    let order = unsafe {
        let function = &raw mut (*class.entry).cmp_proc_finfo;
        pg_sys::FunctionCall2Coll(function, class.collation, value(a), value(b))
    };
    (order.value() as i32).cmp(&0)
}

/// The use of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Use {
    /// Numbers, equal where the values are: Int64.
    Equality,
    /// Numbers for `Numbers::order`: Bytes.
    Order,
}

/// A value's number.
pub struct Key {
    /// Of these.
    pub numbers: Arc<Numbers>,
    /// For that.
    pub for_use: Use,
}

impl Key {
    /// How vectors hold it.
    pub const fn logical(&self) -> LogicalType {
        match self.for_use {
            Use::Equality => LogicalType::Int64,
            Use::Order => LogicalType::Bytes,
        }
    }
}

impl HostFunction for Key {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> query::Result<Vector> {
        let [argument] = arguments else { return Err(query::Error::Decline("numbers of several values")) };
        let numbers = self.numbers.of(argument, rows)?;
        let values = match self.for_use {
            Use::Equality => Values::Int64(numbers.into_iter().map(i64::from).collect()),
            Use::Order => {
                let bytes: Vec<_> = numbers.into_iter().map(u32::to_be_bytes).collect();
                Values::Bytes(bytes.iter().map(<[u8; 4]>::as_slice).collect::<ByteViews>())
            }
        };
        Ok(Vector { logical: self.logical(), validity: argument.validity.clone(), values })
    }

    fn needs_host(&self) -> bool {
        true
    }

    fn can_decline(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        "key"
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
