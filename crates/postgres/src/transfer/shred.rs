//! Columns of a query for a Parquet file: arrays become lists, composite values structs. They are taken apart
//! into single values with levels (`files::parquet::Written` says which).
//!
//! A list of Parquet has one dimension and no numbers. So an array of more dimensions is an ERROR, and so is
//! one that does not begin at 1: nothing is left out silently. Values of the type `record` are text, as
//! nothing says before which parts they have.

use std::ffi::{CStr, c_char};
use std::ops::Range;

use files::parquet::{Shredded, Written};
use pgrx::pg_sys::{self, Datum, FormData_pg_attribute, Oid, TupleDesc};

use super::columns::{self, Gathered};
use crate::compat;
use crate::host::encoding;
use crate::host::error::{self, PgSqlErrorCode as Code};

/// Single values that a column may consist of. Types that hold others several times would have any number.
const MOST_LEAVES: usize = 1 << 14;
/// How deep lists and structs may be in each other: readers have a limit, too.
const DEEPEST: usize = 60;

/// Gathers the values of a column for a file.
pub struct Column {
    /// Errors name it.
    name: String,
    root: Part,
    leaves: Vec<Leaf>,
}

/// A column of single values in the file.
struct Leaf {
    gathered: Gathered,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

/// What the values of a column, or a part of them, consist of.
struct Part {
    /// The columns of single values that it has.
    leaves: Range<usize>,
    kind: Kind,
}

enum Kind {
    Value,
    List {
        element: Box<Part>,
        of: Element,
    },
    /// The parts, with their positions in the descriptor.
    Struct {
        row: RowType,
        parts: Vec<(usize, Part)>,
    },
}

/// A composite type, as it was when the statement began.
struct RowType {
    type_oid: Oid,
    descriptor: TupleDesc,
    /// The server's number of this state of the type.
    state: u64,
}

/// How elements lie in an array.
struct Element {
    type_oid: Oid,
    length: i16,
    by_value: bool,
    align: c_char,
}

/// Where an entry is: what is there of the parts around it, in which list it goes on, and how many there are.
#[derive(Clone, Copy, Default)]
struct Levels {
    definition: i16,
    repetition: i16,
    lists: i16,
}

/// A column of a query: its name and what it is in a file, and what gathers its values.
///
/// # Safety
/// An attribute of a row type. What is made lives as long as the current memory context.
pub unsafe fn column(attribute: &FormData_pg_attribute) -> ((String, Written), Column) {
    // SAFETY: the caller's promise.
    unsafe {
        let name = name_of(attribute);
        let mut leaves = Vec::new();
        let (written, root) = part(attribute.atttypid, attribute.atttypmod, &name, &mut leaves, 0);
        ((name.clone(), written), Column { name, root, leaves })
    }
}

fn name_of(attribute: &FormData_pg_attribute) -> String {
    // SAFETY: a terminated name.
    encoding::to_utf8(unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) }).into_owned()
}

/// What values of a type consist of. Adds their columns of single values.
unsafe fn part(
    type_oid: Oid,
    mut modifier: i32,
    name: &str,
    leaves: &mut Vec<Leaf>,
    depth: usize,
) -> (Written, Part) {
    let first = leaves.len();
    if depth > DEEPEST {
        let message = format!("column \"{name}\" has more than {DEEPEST} lists and structs in each other");
        error::not_supported(message, "", "Copy parts of it: (a).b");
    }
    // SAFETY: catalog look-ups; the descriptor is a copy.
    unsafe {
        pgrx::check_for_interrupts!();
        let base = pg_sys::getBaseTypeAndTypmod(type_oid, &raw mut modifier);
        let (written, kind) = if let Some(of) = element_of(base) {
            let (written, element) = part(of.type_oid, modifier, name, leaves, depth + 1);
            (Written::List(Box::new(written)), Kind::List { element: Box::new(element), of })
        } else if let Some(row) = row_type_of(base) {
            let (mut written, mut parts) = (Vec::new(), Vec::new());
            for (at, attribute) in compat::attributes(row.descriptor).iter().enumerate() {
                if !attribute.attisdropped {
                    let (of_part, own) =
                        part(attribute.atttypid, attribute.atttypmod, name, leaves, depth + 1);
                    written.push((name_of(attribute), of_part));
                    parts.push((at, own));
                }
            }
            (Written::Struct(written), Kind::Struct { row, parts })
        } else {
            let (kind, gathered) = columns::single(base, modifier);
            leaves.push(Leaf { gathered, definition: Vec::new(), repetition: Vec::new() });
            (Written::Value(kind), Kind::Value)
        };
        if leaves.len() > MOST_LEAVES {
            error::not_supported(
                format!("column \"{name}\" consists of more than {MOST_LEAVES} columns of Parquet"),
                "",
                "Copy parts of it: (a).b",
            );
        }
        (written, Part { leaves: first..leaves.len(), kind })
    }
}

/// The elements of an array type. None: it is none, or one whose values do not begin at 1.
unsafe fn element_of(type_oid: Oid) -> Option<Element> {
    if matches!(type_oid, pg_sys::INT2VECTOROID | pg_sys::OIDVECTOROID) {
        return None;
    }
    // SAFETY: catalog look-ups.
    unsafe {
        let type_oid = pg_sys::get_element_type(type_oid);
        if type_oid == pg_sys::InvalidOid {
            return None;
        }
        let (mut length, mut by_value, mut align) = (0, false, 0);
        pg_sys::get_typlenbyvalalign(type_oid, &raw mut length, &raw mut by_value, &raw mut align);
        Some(Element { type_oid, length, by_value, align })
    }
}

/// A composite type. None: it is none, or has no parts.
unsafe fn row_type_of(type_oid: Oid) -> Option<RowType> {
    // SAFETY: catalog look-ups.
    unsafe {
        if type_oid == pg_sys::RECORDOID || !pg_sys::type_is_rowtype(type_oid) {
            return None;
        }
        let descriptor = pg_sys::lookup_rowtype_tupdesc_copy(type_oid, -1);
        let has_parts = compat::attributes(descriptor).iter().any(|attribute| !attribute.attisdropped);
        let state = pg_sys::assign_record_type_identifier(type_oid, -1);
        has_parts.then_some(RowType { type_oid, descriptor, state })
    }
}

impl Column {
    /// Adds a value. Memory is taken of the current context.
    ///
    /// # Errors
    /// An ERROR for an array that is no list.
    ///
    /// # Safety
    /// A value of the column.
    pub unsafe fn push(&mut self, value: Option<Datum>) {
        let Self { name, root, leaves } = self;
        // SAFETY: the caller's promise.
        unsafe {
            match (&root.kind, leaves.as_mut_slice()) {
                (Kind::Value, [leaf]) => leaf.gathered.push(value),
                _ => root.push(value, Levels::default(), leaves, name),
            }
        }
    }

    /// Whether a value takes memory of the current context.
    pub fn allocates(&self) -> bool {
        !matches!((&self.root.kind, self.leaves.as_slice()), (Kind::Value, [leaf]) if !leaf.gathered.allocates())
    }

    /// Bytes that its values take, about.
    pub fn bytes(&self) -> usize {
        let of_leaf = |leaf: &Leaf| leaf.gathered.bytes() + 2 * size_of::<i16>() * leaf.definition.len();
        self.leaves.iter().map(of_leaf).sum()
    }

    /// The values that were gathered.
    pub fn take(&mut self) -> impl Iterator<Item = Shredded> {
        self.leaves.iter_mut().map(|leaf| Shredded {
            values: leaf.gathered.take(),
            definition: std::mem::take(&mut leaf.definition),
            repetition: std::mem::take(&mut leaf.repetition),
        })
    }
}

impl Part {
    /// Adds a value, or that there is none.
    unsafe fn push(&self, value: Option<Datum>, levels: Levels, leaves: &mut [Leaf], name: &str) {
        let Some(value) = value else { return self.end(levels, leaves) };
        let inner = Levels { definition: levels.definition + 1, ..levels };
        // SAFETY: a value of the part's type.
        unsafe {
            match &self.kind {
                Kind::Value => {
                    self.end(inner, leaves);
                    if let Some(leaf) = leaves.get_mut(self.leaves.start) {
                        leaf.gathered.push(Some(value));
                    }
                }
                Kind::Struct { row, parts } => {
                    let (values, nulls) = row.parts(value, name);
                    for (at, part) in parts {
                        let value = values.get(*at).copied().filter(|_| nulls.get(*at) == Some(&false));
                        part.push(value, inner, leaves, name);
                    }
                }
                Kind::List { element, of } => {
                    let (values, nulls) = of.elements(value, name);
                    if values.is_empty() {
                        return self.end(inner, leaves);
                    }
                    let lists = levels.lists + 1;
                    let mut at = Levels { definition: levels.definition + 2, lists, ..levels };
                    for (&value, &is_null) in values.iter().zip(nulls) {
                        element.push((!is_null).then_some(value), at, leaves, name);
                        at.repetition = lists;
                    }
                }
            }
        }
    }

    /// Adds an entry that ends here to each column of the part.
    fn end(&self, levels: Levels, leaves: &mut [Leaf]) {
        for leaf in leaves.get_mut(self.leaves.clone()).unwrap_or_default() {
            leaf.definition.push(levels.definition);
            leaf.repetition.push(levels.repetition);
        }
    }
}

impl RowType {
    /// The parts of a value, in the current memory context.
    ///
    /// # Errors
    /// An ERROR where the query itself has changed the type.
    unsafe fn parts<'a>(&self, value: Datum, name: &str) -> (&'a [Datum], &'a [bool]) {
        // SAFETY: a value of the descriptor's type; the server fills as many places as it has attributes.
        unsafe {
            if pg_sys::assign_record_type_identifier(self.type_oid, -1) != self.state {
                error::raise(
                    Code::ERRCODE_OBJECT_IN_USE,
                    format!("the type of column \"{name}\" has changed since the statement began"),
                    "",
                    "Run it once more.",
                );
            }
            let plain = pg_sys::pg_detoast_datum(value.cast_mut_ptr());
            let mut tuple = pg_sys::HeapTupleData {
                t_len: pgrx::varlena::varsize_any(plain) as u32,
                t_data: plain.cast(),
                ..pg_sys::HeapTupleData::default()
            };
            let count = compat::attributes(self.descriptor).len();
            let values = pg_sys::palloc(count * size_of::<Datum>()).cast::<Datum>();
            let nulls = pg_sys::palloc(count).cast::<bool>();
            pg_sys::heap_deform_tuple(&raw mut tuple, self.descriptor, values, nulls);
            (std::slice::from_raw_parts(values, count), std::slice::from_raw_parts(nulls, count))
        }
    }
}

impl Element {
    /// The elements of an array, in the current memory context.
    unsafe fn elements<'a>(&self, array: Datum, name: &str) -> (&'a [Datum], &'a [bool]) {
        // SAFETY: an array of such elements; the server gives as many values and marks as it says. Behind the
        // header are the lengths of the dimensions, then their first numbers.
        unsafe {
            let array = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
            let dimensions = usize::try_from((*array).ndim).unwrap_or(0);
            let first = || *array.add(1).cast::<i32>().add(dimensions);
            if dimensions > 1 || (dimensions == 1 && first() != 1) {
                let is = match dimensions {
                    1 => format!("begins at {}", first()),
                    _ => format!("has {dimensions} dimensions"),
                };
                error::raise(
                    Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                    format!("column \"{name}\" has an array that is no list of Parquet"),
                    &format!("It {is}. Lists have one dimension, and begin at 1."),
                    "Copy a text or JSON instead, a::text or to_json(a), or a[:], which begins at 1.",
                );
            }
            let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
            pg_sys::deconstruct_array(
                array,
                self.type_oid,
                self.length.into(),
                self.by_value,
                self.align,
                &raw mut values,
                &raw mut nulls,
                &raw mut count,
            );
            match usize::try_from(count).unwrap_or(0) {
                0 => (&[], &[]),
                count => {
                    (std::slice::from_raw_parts(values, count), std::slice::from_raw_parts(nulls, count))
                }
            }
        }
    }
}
