//! Heap tables whose columnstore indexes lack a column that a statement reads: EXPLAIN tells which.
//!
//! `columnstore_path` notes such a table while a statement is planned. EXPLAIN plans a statement before it
//! shows or runs it. So the notes that it shows are those of the first planning that ends after it has begun.
//! They are shown behind the plan, in the text format only: in the others what follows a plan would count as
//! a plan of its own. A prepared statement may have been planned long before, and is told nothing of.
//!
//! Plannings are nested where the planner runs a function that plans a statement. Each has its own notes.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};

use pgrx::pg_sys::{self, ExplainState, IntoClause, Oid, ParamListInfo, Query, QueryEnvironment};

use crate::compat;
use crate::host::full_errors;
use crate::host::hooks::Chain;

/// Tables that are named of those that lack the same columns.
const MOST_NAMED: usize = 3;

static NEXT: Chain<pg_sys::ExplainOneQuery_hook_type> = Chain::new();

/// A table, and the columns that none of its columnstore indexes has.
#[derive(Clone, PartialEq, Eq)]
struct Lacking {
    table: Oid,
    columns: Vec<i32>,
}

thread_local! {
    /// Of the present planning.
    static NOTED: RefCell<Vec<Lacking>> = const { RefCell::new(Vec::new()) };
    /// How many plannings are under way.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// EXPLAIN waits for the end of its planning.
    static WAITS: Cell<bool> = const { Cell::new(false) };
    /// What that planning has noted.
    static EXPLAINED: RefCell<Vec<Lacking>> = const { RefCell::new(Vec::new()) };
}

/// Puts the hook in front of those already there.
///
/// # Safety
/// Runs once, while the library is loaded.
pub unsafe fn install() {
    // SAFETY: the caller's promise.
    unsafe { NEXT.put_in_front(&raw mut pg_sys::ExplainOneQuery_hook, Some(explain_one_query)) };
}

/// Notes columns, by their numbers, that none of the table's columnstore indexes has.
pub fn note(table: Oid, columns: Vec<i32>) {
    let lacking = Lacking { table, columns };
    NOTED.with_borrow_mut(|noted| {
        if !noted.contains(&lacking) {
            noted.push(lacking);
        }
    });
}

/// A planning. Its notes are gone when it ends, also by an ERROR.
pub struct Planning {
    outer: Vec<Lacking>,
}

impl Planning {
    /// Begins one.
    pub fn begin() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self { outer: NOTED.take() }
    }

    /// Ends it well: EXPLAIN gets its notes, if it waits for them.
    pub fn end(self) {
        if DEPTH.get() == 1 && WAITS.take() {
            EXPLAINED.set(NOTED.take());
        }
    }
}

impl Drop for Planning {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
        NOTED.set(std::mem::take(&mut self.outer));
    }
}

unsafe extern "C-unwind" fn explain_one_query(
    query: *mut Query,
    options: c_int,
    into: *mut IntoClause,
    es: *mut ExplainState,
    text: *const c_char,
    params: ParamListInfo,
    environment: *mut QueryEnvironment,
) {
    // SAFETY: the server's own structs, passed on as they came; what is called may raise an ERROR.
    unsafe {
        full_errors::guarded(|| {
            let explaining = Explaining::begin();
            pg_sys::ffi::pg_guard_ffi_boundary(|| match NEXT.next() {
                Some(next) => next(query, options, into, es, text, params, environment),
                None => compat::explain_one_query(query, options, into, es, text, params, environment),
            });
            show(&EXPLAINED.take(), es);
            drop(explaining);
        });
    }
}

/// One EXPLAIN. It may run a statement that explains another one, which has its own notes.
struct Explaining {
    outer: (bool, Vec<Lacking>),
}

impl Explaining {
    fn begin() -> Self {
        Self { outer: (WAITS.replace(true), EXPLAINED.take()) }
    }
}

impl Drop for Explaining {
    fn drop(&mut self) {
        WAITS.set(self.outer.0);
        EXPLAINED.set(std::mem::take(&mut self.outer.1));
    }
}

/// One line for all tables that lack the same columns.
unsafe fn show(all: &[Lacking], es: *mut ExplainState) {
    // SAFETY: EXPLAIN's own struct; every string is NUL-terminated and copied.
    unsafe {
        if (*es).format != pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            return;
        }
        let named = all.iter().map(|lacking| (lacking, columns_of(lacking))).collect::<Vec<_>>();
        let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
        for (lacking, columns) in &named {
            let table = name_of(pg_sys::get_rel_name(lacking.table));
            match lines.iter_mut().find(|(of, _)| of == columns) {
                Some((_, tables)) => tables.push(table),
                None => lines.push((columns, vec![table])),
            }
        }
        for (columns, tables) in lines {
            let more = tables.len().saturating_sub(MOST_NAMED);
            let tables = tables[..tables.len() - more].join(", ");
            let more = if more > 0 { format!(" and of {more} more tables") } else { String::new() };
            let line = CString::new(format!("no index of {tables}{more} has {columns}")).unwrap_or_default();
            pg_sys::ExplainPropertyText(c"Columnstore Not Used".as_ptr(), line.as_ptr(), es);
        }
    }
}

/// The names of the columns.
unsafe fn columns_of(lacking: &Lacking) -> String {
    // SAFETY: a look into the catalog's cache.
    let name = |&number: &i32| unsafe {
        name_of(pg_sys::get_attname(lacking.table, i16::try_from(number).unwrap_or(0), true))
    };
    lacking.columns.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A name as SQL writes it. Empty for what is no more.
unsafe fn name_of(name: *mut c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: a string of the server's.
    unsafe { CStr::from_ptr(pg_sys::quote_identifier(name)) }.to_string_lossy().into_owned()
}
