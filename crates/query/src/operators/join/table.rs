//! Finding, for a batch of keys, the kept rows with equal keys.
//!
//! Made once by `build`, read by all threads that probe. A table gives for each key its *head*: the first
//! kept row with that key, plus one; zero when there is none. Rows with equal keys are chained in order of
//! arrival (`next`). Heads are found by the same structures as groups (`row_container`). Keys that are
//! integers give each row a code (`IntCodes`). If few codes are possible (surrogate keys, dates), an array
//! has a head for each code. Otherwise an `IntIndex` has the heads; it takes a single key without a code.
//! Other keys are in `TaggedSlots` by the hash of all key columns, and the columns are compared afterwards.
//! Invariant: a row with a NULL key is in no table.

use vector::{Values, Vector};

use super::keys::{Form, KeyColumn, KeyValues, KnownCodes, hash_keys};
use crate::row_container::{IntIndex, NO_CODE, TaggedSlots, table_of};
use crate::{Error, Result, interrupt};

/// The array is made if it has at most this many slots for each kept row, or at most `SMALL` slots.
const SPARSE: u64 = 32;
/// Slots that the array may always have.
const SMALL: u64 = 1 << 18;

/// Head that a cache does not know yet.
const UNKNOWN: u32 = u32::MAX;

/// Where kept rows are found.
pub struct Table {
    kind: Kind,
    next: Option<Vec<u32>>,
    forms: Vec<Form>,
}

enum Kind {
    /// Every key has this head.
    All(u32),
    /// The head of each code.
    Array {
        coding: KnownCodes,
        slots: Vec<u32>,
    },
    /// The only key's heads, by its integers themselves.
    Single(IntIndex),
    /// Heads by code.
    Coded {
        coding: KnownCodes,
        heads: IntIndex<u64>,
    },
    Hashed {
        slots: TaggedSlots,
        columns: Vec<KeyColumn>,
    },
}

/// Buffers that one thread keeps between look-ups.
#[derive(Default)]
pub struct Scratch {
    words: Vec<u64>,
    slots: Vec<u64>,
    dictionary: Option<u64>,
    known: Vec<u32>,
}

impl Table {
    /// A table of these rows. Without `duplicates` only one row of each key can be found, which is enough to
    /// know whether there is one.
    pub fn new(keys: &[Vector], rows: usize, duplicates: bool) -> Result<Self> {
        if u32::try_from(rows).is_err() || rows >= UNKNOWN as usize {
            return Err(Error::Decline("join with more than 4 billion rows on the kept side"));
        }
        let forms: Vec<Form> = keys.iter().map(Form::of).collect();
        let mut table = Self { kind: Kind::All(0), next: None, forms };
        if rows == 0 {
            return Ok(table);
        }
        if keys.is_empty() {
            table.kind = Kind::All(1);
            if rows > 1 && duplicates {
                let last = u32::try_from(rows).unwrap_or(0);
                table.next = Some((2..=last).chain(std::iter::once(0)).collect());
            }
            return Ok(table);
        }
        let columns = keys.iter().zip(&table.forms).map(|(key, &form)| KeyColumn::new(key, form));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let mut chain = Chain { next: None, rows, wanted: duplicates };
        let most = (rows as u64 * SPARSE).max(SMALL);
        table.kind = match (KnownCodes::new(&columns), columns.as_slice()) {
            (Some(coding), _) if coding.places() <= most => array(coding, &columns, &mut chain)?,
            (_, [KeyColumn { values: KeyValues::Int(values), .. }]) => single(values, &columns, &mut chain)?,
            (Some(coding), _) => coded(coding, &columns, &mut chain)?,
            (None, _) => hashed(columns, rows, &mut chain)?,
        };
        table.next = chain.next;
        Ok(table)
    }

    /// The kept row after `head` with the same key, in the terms of heads.
    #[inline]
    pub fn next(&self, head: u32) -> u32 {
        let next = self.next.as_ref().and_then(|next| next.get((head as usize).wrapping_sub(1)));
        next.copied().unwrap_or(0)
    }

    /// True when some key has several rows.
    pub const fn has_duplicates(&self) -> bool {
        self.next.is_some()
    }

    /// Fills `heads` for `rows` rows of keys.
    pub fn find(
        &self,
        keys: &[&Vector],
        rows: usize,
        scratch: &mut Scratch,
        heads: &mut Vec<u32>,
    ) -> Result<()> {
        if let Kind::All(head) = self.kind {
            heads.clear();
            heads.resize(rows, head);
            return Ok(());
        }
        if let [key] = keys
            && let Values::Dictionary { codes, dictionary } = &key.values
        {
            if scratch.dictionary != Some(dictionary.id) {
                scratch.dictionary = Some(dictionary.id);
                scratch.known.clear();
                scratch.known.resize(dictionary.entries.len(), UNKNOWN);
            }
            let mut missing = Vec::new();
            for &code in codes {
                if let Some(known) = scratch.known.get_mut(code as usize).filter(|known| **known == UNKNOWN) {
                    *known = 0;
                    missing.push(code);
                }
            }
            if !missing.is_empty() {
                let entries = dictionary.entries.take(&missing);
                self.find_values(&[&entries], missing.len(), scratch, heads)?;
                for (&code, &head) in missing.iter().zip(heads.iter()) {
                    if let Some(known) = scratch.known.get_mut(code as usize) {
                        *known = head;
                    }
                }
            }
            heads.clear();
            let known = &scratch.known;
            heads.extend(codes.iter().map(|&code| known.get(code as usize).copied().unwrap_or(0)));
            if let Some(validity) = &key.validity {
                heads.iter_mut().enumerate().filter(|(row, _)| !validity.get(*row)).for_each(|(_, h)| *h = 0);
            }
            return Ok(());
        }
        self.find_values(keys, rows, scratch, heads)
    }

    fn find_values(
        &self,
        keys: &[&Vector],
        rows: usize,
        scratch: &mut Scratch,
        heads: &mut Vec<u32>,
    ) -> Result<()> {
        heads.clear();
        heads.reserve(rows);
        if let (Kind::Array { coding, slots }, [key]) = (&self.kind, keys)
            && self.forms == [Form::Int]
            && key.validity.is_none()
            && let Some(codes) = coding.single()
        {
            // The most frequent join of all: one integer key into an array, in one loop. What has no code is
            // beyond the array's end, or at its first place, which no key has.
            let slot = |value: i64| head_at(slots, codes.code(value));
            match &key.values {
                Values::Int32(values) => {
                    heads.extend(values.iter().map(|&value| slot(value.into())));
                    return Ok(());
                }
                Values::Int64(values) => {
                    heads.extend(values.iter().map(|&value| slot(value)));
                    return Ok(());
                }
                _ => {}
            }
        }
        let columns = keys.iter().zip(&self.forms).map(|(key, &form)| KeyColumn::new(key, form));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        match &self.kind {
            Kind::All(head) => heads.resize(rows, *head),
            Kind::Array { coding, slots } => {
                coding.encode(&columns, rows, &mut scratch.words);
                heads.extend(scratch.words.iter().map(|&code| head_at(slots, code)));
            }
            Kind::Single(index) => {
                if let [KeyColumn { values: KeyValues::Int(values), .. }] = columns.as_slice() {
                    index.find(values, heads);
                }
                clear_unmatchable(&columns, heads);
            }
            Kind::Coded { coding, heads: index } => {
                coding.encode(&columns, rows, &mut scratch.words);
                index.find(&scratch.words, heads);
            }
            Kind::Hashed { slots, columns: kept } => {
                hash_keys(&columns, rows, &mut scratch.words);
                find_hashed(slots, kept, &columns, scratch, heads);
            }
        }
        Ok(())
    }
}

/// Rows with equal keys, while a table is made: rows come last first, so that chains run forward.
struct Chain {
    next: Option<Vec<u32>>,
    rows: usize,
    wanted: bool,
}

impl Chain {
    /// `head` is put before `after`, which has the same key; 0: there is none.
    #[inline]
    fn link(&mut self, head: u32, after: u32) {
        if after != 0 && self.wanted {
            let next = self.next.get_or_insert_with(|| vec![0; self.rows]);
            if let Some(link) = next.get_mut((head as usize).wrapping_sub(1)) {
                *link = after;
            }
        }
    }
}

/// Heads with their rows, last first.
fn heads_reversed(rows: usize) -> impl Iterator<Item = (usize, u32)> {
    (0..rows).rev().map(|row| (row, u32::try_from(row + 1).unwrap_or(UNKNOWN)))
}

/// The head of a code; none beyond the end.
#[inline]
fn head_at(slots: &[u32], code: u64) -> u32 {
    usize::try_from(code).ok().and_then(|at| slots.get(at)).copied().unwrap_or(0)
}

/// Rows that equal nothing have no head.
fn clear_unmatchable(columns: &[KeyColumn], heads: &mut [u32]) {
    for column in columns {
        column.each_unmatchable(|row| {
            if let Some(head) = heads.get_mut(row) {
                *head = 0;
            }
        });
    }
}

fn array(coding: KnownCodes, columns: &[KeyColumn], chain: &mut Chain) -> Result<Kind> {
    let mut slots: Vec<u32> = table_of(usize::try_from(coding.places()).unwrap_or(usize::MAX))?;
    let mut codes = Vec::new();
    coding.encode(columns, chain.rows, &mut codes);
    for (row, head) in heads_reversed(codes.len()) {
        interrupt::check_at(row)?;
        let code = codes.get(row).copied().unwrap_or(NO_CODE);
        if let Some(slot) = usize::try_from(code).ok().and_then(|at| slots.get_mut(at)) {
            chain.link(head, *slot);
            *slot = head;
        }
    }
    Ok(Kind::Array { coding, slots })
}

fn single(values: &[i64], columns: &[KeyColumn], chain: &mut Chain) -> Result<Kind> {
    let mut index = IntIndex::with_room(values.len())?;
    for (row, head) in heads_reversed(values.len()) {
        interrupt::check_at(row)?;
        if let Some(&value) = values.get(row)
            && columns.iter().all(|column| column.can_match(row))
        {
            chain.link(head, index.replace(value, head));
        }
    }
    Ok(Kind::Single(index))
}

fn coded(coding: KnownCodes, columns: &[KeyColumn], chain: &mut Chain) -> Result<Kind> {
    let mut codes = Vec::new();
    coding.encode(columns, chain.rows, &mut codes);
    let mut heads = IntIndex::with_room(codes.len())?;
    for (row, head) in heads_reversed(codes.len()) {
        interrupt::check_at(row)?;
        let code = codes.get(row).copied().unwrap_or(NO_CODE);
        if code != NO_CODE {
            chain.link(head, heads.replace(code, head));
        }
    }
    Ok(Kind::Coded { coding, heads })
}

/// Slots for `rows` rows. Between a third and two thirds of the slots are used.
fn slots_for(rows: usize) -> Result<TaggedSlots> {
    TaggedSlots::new((rows + rows / 2).max(16))
}

/// Puts a row into the slots; `same` says whether a row with the same tag has the same key.
#[inline]
fn insert(slots: &mut TaggedSlots, hash: u64, head: u32, chain: &mut Chain, same: impl Fn(usize) -> bool) {
    let (mut other, mut at) = slots.next(hash, slots.place(hash));
    while other != 0 && !same(other as usize - 1) {
        (other, at) = slots.next(hash, slots.after(at));
    }
    chain.link(head, other);
    slots.set(at, hash, head);
}

fn hashed(columns: Vec<KeyColumn>, rows: usize, chain: &mut Chain) -> Result<Kind> {
    let mut hashes = Vec::new();
    hash_keys(&columns, rows, &mut hashes);
    let mut slots = slots_for(rows)?;
    for (row, head) in heads_reversed(rows) {
        interrupt::check_at(row)?;
        if columns.iter().all(|column| column.can_match(row)) {
            let hash = hashes.get(row).copied().unwrap_or(0);
            insert(&mut slots, hash, head, chain, |other| {
                columns.iter().all(|column| column.equals(row, column, other))
            });
        }
    }
    Ok(Kind::Hashed { slots, columns })
}

fn find_hashed(
    slots: &TaggedSlots,
    kept: &[KeyColumn],
    columns: &[KeyColumn],
    scratch: &mut Scratch,
    heads: &mut Vec<u32>,
) {
    scratch.slots.clear();
    scratch.slots.extend(scratch.words.iter().map(|&hash| slots.first(hash)));
    let mut places = Vec::with_capacity(scratch.words.len());
    for (&hash, &slot) in scratch.words.iter().zip(&scratch.slots) {
        let (head, at) = slots.next_from(hash, slots.place(hash), slot);
        heads.push(head);
        places.push(at);
    }
    clear_unmatchable(columns, heads);
    // Compare columns; a row whose candidate differs goes on to the next one. Tags make that rare.
    let mut pending: Vec<u32> = Vec::new();
    let differs = |heads: &[u32], row: usize| {
        let head = heads.get(row).copied().unwrap_or(0) as usize;
        head != 0 && !columns.iter().zip(kept).all(|(column, kept)| column.equals(row, kept, head - 1))
    };
    match (columns, kept) {
        ([column], [kept]) => differing(column, kept, heads, &mut pending),
        _ => {
            let rows = (0u32..).zip(0..heads.len());
            pending.extend(rows.filter(|&(_, row)| differs(heads, row)).map(|(row, _)| row));
        }
    }
    while !pending.is_empty() {
        for &row in &pending {
            let row = row as usize;
            let hash = scratch.words.get(row).copied().unwrap_or(0);
            let (head, at) = slots.next(hash, slots.after(places.get(row).copied().unwrap_or(0)));
            if let (Some(to), Some(place)) = (heads.get_mut(row), places.get_mut(row)) {
                (*to, *place) = (head, at);
            }
        }
        pending.retain(|&row| differs(heads, row as usize));
    }
}

/// Rows of one key column that differ from their candidates.
fn differing(column: &KeyColumn, kept: &KeyColumn, heads: &[u32], pending: &mut Vec<u32>) {
    fn compare(heads: &[u32], pending: &mut Vec<u32>, equal: impl Fn(usize, usize) -> bool) {
        for (row, (&head, at)) in heads.iter().zip(0u32..).enumerate() {
            if head != 0 && !equal(row, head as usize - 1) {
                pending.push(at);
            }
        }
    }
    match (&column.values, &kept.values) {
        (KeyValues::Bytes(a), KeyValues::Bytes(b)) => {
            compare(heads, pending, |row, other| super::keys::bytes_equal(a, row, b, other));
        }
        (KeyValues::Wide(a), KeyValues::Wide(b)) => {
            compare(heads, pending, |row, other| a.get(row) == b.get(other));
        }
        _ => compare(heads, pending, |row, other| column.equals(row, kept, other)),
    }
}
