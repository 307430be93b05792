//! Reading the server's jsonb.
//!
//! Layout (`utils/jsonb.h`): a container is a header word (count and kind), one entry word a child (an
//! object's keys first, then its values), then the children's bytes. An entry holds a kind and either a
//! length or, now and then, the offset of the end; numbers and containers begin on a border of four. A scalar
//! document is an array of one with a flag. Invariant: every offset is checked.

use vector::{Error, Result};

use crate::convert::numeric;

const COUNT: u32 = 0x0FFF_FFFF;
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;
const HAS_OFFSET: u32 = 0x8000_0000;
const LENGTH: u32 = 0x0FFF_FFFF;
const KIND: u32 = 0x7000_0000;
const STRING: u32 = 0;
const NUMERIC: u32 = 0x1000_0000;
const FALSE: u32 = 0x2000_0000;
const TRUE: u32 = 0x3000_0000;
const NULL: u32 = 0x4000_0000;
const CONTAINER: u32 = 0x5000_0000;

fn damaged() -> Error {
    Error::corrupt("a jsonb value ends before its parts")
}

fn word(value: &[u8], at: usize) -> Result<u32> {
    let bytes = value.get(at..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map(|bytes| u32::from_ne_bytes(*bytes)).ok_or_else(damaged)
}

/// An object or array inside a document.
#[derive(Clone, Copy)]
struct Container<'a> {
    value: &'a [u8],
    start: usize,
    header: u32,
}

/// One value inside a document.
enum Item<'a> {
    Null,
    Bool(bool),
    String(&'a [u8]),
    /// Without its length word.
    Numeric(&'a [u8]),
    Container(Container<'a>),
}

/// Children of a container in order, keys of an object first.
struct Children<'a> {
    container: Container<'a>,
    words: usize,
    next: usize,
    /// Where the next child's bytes begin, from the first child's.
    offset: usize,
}

impl<'a> Container<'a> {
    fn open(value: &'a [u8], start: usize) -> Result<Self> {
        let header = word(value, start)?;
        match header & (OBJECT | ARRAY) {
            OBJECT | ARRAY => Ok(Self { value, start, header }),
            _ => Err(Error::corrupt("a jsonb container of no kind")),
        }
    }

    const fn count(self) -> usize {
        (self.header & COUNT) as usize
    }

    const fn is_object(self) -> bool {
        self.header & OBJECT != 0
    }

    const fn is_scalar(self) -> bool {
        self.header & SCALAR != 0
    }

    fn children(self) -> Children<'a> {
        let words = if self.is_object() { self.count() * 2 } else { self.count() };
        Children { container: self, words, next: 0, offset: 0 }
    }

    /// The value of a key.
    fn field(self, key: &[u8]) -> Result<Option<Item<'a>>> {
        if !self.is_object() {
            return Ok(None);
        }
        let mut children = self.children();
        let mut found = None;
        for number in 0..self.count() {
            let (entry, start, end) = children.next_place()?.ok_or_else(damaged)?;
            if found.is_none() && entry & KIND == STRING && self.value.get(start..end) == Some(key) {
                found = Some(number);
            }
        }
        let Some(found) = found else { return Ok(None) };
        for _ in 0..found {
            children.next_place()?;
        }
        children.next()
    }
}

impl<'a> Children<'a> {
    /// Entry word, start and end of the next child in the value.
    fn next_place(&mut self) -> Result<Option<(u32, usize, usize)>> {
        if self.next >= self.words {
            return Ok(None);
        }
        let first = self.container.start + 4;
        let entry = word(self.container.value, first + 4 * self.next)?;
        self.next += 1;
        let length = (entry & LENGTH) as usize;
        let start = self.offset;
        self.offset = if entry & HAS_OFFSET != 0 { length } else { start + length };
        let base = first + 4 * self.words;
        if self.offset < start || base + self.offset > self.container.value.len() {
            return Err(damaged());
        }
        Ok(Some((entry, base + start, base + self.offset)))
    }

    fn next(&mut self) -> Result<Option<Item<'a>>> {
        let Some((entry, start, end)) = self.next_place()? else { return Ok(None) };
        let value = self.container.value;
        Ok(Some(match entry & KIND {
            STRING => Item::String(value.get(start..end).ok_or_else(damaged)?),
            NUMERIC => Item::Numeric(number(value, start.next_multiple_of(4), end)?),
            FALSE => Item::Bool(false),
            TRUE => Item::Bool(true),
            NULL => Item::Null,
            CONTAINER => Item::Container(Container::open(value, start.next_multiple_of(4))?),
            _ => return Err(Error::corrupt("a jsonb value of no kind")),
        }))
    }
}

/// A numeric inside a document, without its length word.
fn number(value: &[u8], start: usize, end: usize) -> Result<&[u8]> {
    let header = word(value, start)?;
    let (skip, length) = match header & 1 {
        0 => (4, (header >> 2) as usize),
        _ => (1, (header >> 1 & 0x7F) as usize),
    };
    if length < skip || start + length > end {
        return Err(damaged());
    }
    value.get(start + skip..start + length).ok_or_else(damaged)
}

/// `value ? key`.
pub fn exists(value: &[u8], key: &[u8]) -> Result<bool> {
    let root = Container::open(value, 0)?;
    let mut children = root.children();
    for _ in 0..root.count() {
        if let Some(Item::String(text)) = children.next()?
            && text == key
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `value @> other`.
pub fn contains(value: &[u8], other: &[u8]) -> Result<bool> {
    within(Container::open(value, 0)?, Container::open(other, 0)?)
}

/// Whether a document has more levels than `contains` and `leaves` go down, each in a frame of the stack.
pub fn is_deep(value: &[u8]) -> Result<bool> {
    const DEEPEST: usize = 500;
    fn goes_below(container: Container<'_>, levels: usize) -> Result<bool> {
        let Some(levels) = levels.checked_sub(1) else { return Ok(true) };
        let mut children = container.children();
        while let Some(child) = children.next()? {
            if let Item::Container(inner) = child
                && goes_below(inner, levels)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
    goes_below(Container::open(value, 0)?, DEEPEST)
}

fn within(value: Container<'_>, other: Container<'_>) -> Result<bool> {
    if value.is_object() != other.is_object() {
        return Ok(false);
    }
    if value.is_object() {
        if value.count() < other.count() {
            return Ok(false);
        }
        let mut keys = other.children();
        let mut wanted = other.children();
        for _ in 0..other.count() {
            wanted.next_place()?;
        }
        for _ in 0..other.count() {
            let (Some(Item::String(key)), Some(wanted)) = (keys.next()?, wanted.next()?) else {
                return Err(damaged());
            };
            match value.field(key)? {
                Some(found) if matches(&found, &wanted)? => {}
                _ => return Ok(false),
            }
        }
        return Ok(true);
    }
    // A scalar contains only a scalar; an array may contain one.
    if value.is_scalar() && !other.is_scalar() {
        return Ok(false);
    }
    let mut wanted = other.children();
    while let Some(wanted) = wanted.next()? {
        let mut found = false;
        let mut elements = value.children();
        while !found && let Some(element) = elements.next()? {
            found = matches(&element, &wanted)?;
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Equal scalars, or a container that contains the other.
fn matches(found: &Item<'_>, wanted: &Item<'_>) -> Result<bool> {
    Ok(match (found, wanted) {
        (Item::Null, Item::Null) => true,
        (Item::Bool(a), Item::Bool(b)) => a == b,
        (Item::String(a), Item::String(b)) => a == b,
        (Item::Numeric(a), Item::Numeric(b)) => numeric::is_same(a, b).ok_or_else(damaged)?,
        (Item::Container(a), Item::Container(b)) => within(*a, *b)?,
        _ => false,
    })
}

/// `value ->> key`; false for NULL.
pub fn field_text(value: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
    match Container::open(value, 0)?.field(key)? {
        None | Some(Item::Null) => Ok(false),
        Some(Item::String(text)) => {
            out.extend_from_slice(text);
            Ok(true)
        }
        Some(item) => {
            write_item(&item, out)?;
            Ok(true)
        }
    }
}

/// An item as the server's output function writes it; without recursion, as documents may be nested thousands
/// of levels deep.
fn write_item(item: &Item<'_>, out: &mut Vec<u8>) -> Result<()> {
    let mut open: Vec<Open<'_>> = Vec::new();
    open.extend(write_scalar(item, out)?);
    while let Some(inner) = open.last_mut() {
        let next = inner.next(out)?;
        match next {
            None => {
                open.pop();
            }
            Some(item) => open.extend(write_scalar(&item, out)?),
        }
    }
    Ok(())
}

/// Writes a scalar, or opens a container.
fn write_scalar<'a>(item: &Item<'a>, out: &mut Vec<u8>) -> Result<Option<Open<'a>>> {
    match item {
        Item::Null => out.extend_from_slice(b"null"),
        Item::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Item::String(text) => write_string(text, out),
        Item::Numeric(number) => numeric::write_text(number, out).ok_or_else(damaged)?,
        Item::Container(container) => return Open::begin(*container, out).map(Some),
    }
    Ok(None)
}

/// A container that is being written.
struct Open<'a> {
    container: Container<'a>,
    /// An array's elements or an object's keys.
    children: Children<'a>,
    /// An object's values.
    values: Children<'a>,
    /// Elements or pairs that were begun.
    begun: usize,
}

impl<'a> Open<'a> {
    fn begin(container: Container<'a>, out: &mut Vec<u8>) -> Result<Self> {
        let mut values = container.children();
        if container.is_object() {
            for _ in 0..container.count() {
                values.next_place()?;
            }
        }
        out.push(if container.is_object() { b'{' } else { b'[' });
        Ok(Self { container, children: container.children(), values, begun: 0 })
    }

    /// Writes what comes before the next element or value, and returns that; or closes the container.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<Item<'a>>> {
        if self.begun == self.container.count() {
            out.push(if self.container.is_object() { b'}' } else { b']' });
            return Ok(None);
        }
        if self.begun > 0 {
            out.extend_from_slice(b", ");
        }
        self.begun += 1;
        let child = self.children.next()?.ok_or_else(damaged)?;
        if !self.container.is_object() {
            return Ok(Some(child));
        }
        write_scalar(&child, out)?;
        out.extend_from_slice(b": ");
        self.values.next()?.ok_or_else(damaged).map(Some)
    }
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for &byte in text {
        let short = match byte {
            b'\x08' => b'b',
            b'\x0C' => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            b'"' | b'\\' => byte,
            0..b' ' => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX.get(usize::from(byte >> 4)).copied().unwrap_or(b'0'));
                out.push(HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0'));
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}

/// `value -> key`; false for NULL.
pub fn field(value: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
    let Some(item) = Container::open(value, 0)?.field(key)? else { return Ok(false) };
    let mut scalar = |kind: u32, bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap_or(0);
        out.extend_from_slice(&(ARRAY | SCALAR | 1).to_ne_bytes());
        // The first child's entry always holds its end, which is its length.
        out.extend_from_slice(&(kind | length | HAS_OFFSET).to_ne_bytes());
        out.extend_from_slice(bytes);
    };
    match item {
        Item::Null => scalar(NULL, &[]),
        Item::Bool(truth) => scalar(if truth { TRUE } else { FALSE }, &[]),
        Item::String(text) => scalar(STRING, text),
        Item::Numeric(number) => {
            let mut bytes = u32::try_from(number.len() + 4)
                .map_err(|_| damaged())?
                .wrapping_shl(2)
                .to_ne_bytes()
                .to_vec();
            bytes.extend_from_slice(number);
            scalar(NUMERIC, &bytes);
        }
        Item::Container(container) => {
            let mut children = container.children();
            let mut end = container.start + 4;
            while let Some((_, _, last)) = children.next_place()? {
                end = last;
            }
            out.extend_from_slice(value.get(container.start..end).ok_or_else(damaged)?);
        }
    }
    Ok(true)
}

/// A scalar that a document has to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf {
    /// This text.
    Text(Vec<u8>),
    /// This truth value.
    Bool(bool),
    /// Some number.
    Number,
}

/// A scalar and the keys that lead to it.
pub type Placed = (Vec<Vec<u8>>, Leaf);

/// The scalars of an object, each with the keys that lead to it, where these are all that containing the
/// object asks for: nested objects, but no arrays, NULLs and empty objects.
pub fn leaves(value: &[u8]) -> Result<Option<Vec<Placed>>> {
    if is_deep(value)? {
        return Ok(None);
    }
    let mut found = Vec::new();
    let plain = gather(Container::open(value, 0)?, &mut Vec::new(), &mut found)?;
    Ok(plain.then_some(found))
}

fn gather(container: Container<'_>, keys: &mut Vec<Vec<u8>>, found: &mut Vec<Placed>) -> Result<bool> {
    if !container.is_object() || container.count() == 0 {
        return Ok(false);
    }
    let mut names = container.children();
    for _ in 0..container.count() {
        let Some(Item::String(key)) = names.next()? else { return Err(damaged()) };
        keys.push(key.to_vec());
        let leaf = match container.field(key)?.ok_or_else(damaged)? {
            Item::String(text) => Some(Leaf::Text(text.to_vec())),
            Item::Bool(truth) => Some(Leaf::Bool(truth)),
            Item::Numeric(_) => Some(Leaf::Number),
            Item::Null => return Ok(false),
            Item::Container(inner) => {
                if !gather(inner, keys, found)? {
                    return Ok(false);
                }
                None
            }
        };
        if let Some(leaf) = leaf {
            found.push((keys.clone(), leaf));
        }
        keys.pop();
    }
    Ok(true)
}
