//! What SQLite's planner asks of a virtual table, and what it is told.

use std::ffi::{CStr, c_int};
use std::ops::Range;

use super::value::Argument;
use super::{module, raw};

/// How a constraint compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`, or IN.
    Equal,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
    /// IS NULL.
    IsNull,
    /// IS NOT NULL.
    IsNotNull,
    /// The query's LIMIT. It has no column.
    Limit,
    /// The query's OFFSET.
    Offset,
}

/// A condition of the query on one column of the table.
#[derive(Debug, Clone, Copy)]
pub struct Constraint {
    /// Its position among all constraints.
    pub at: usize,
    /// The column. None for the row's id.
    pub column: Option<usize>,
    /// How it compares.
    pub operator: Operator,
}

/// One question of the planner.
pub struct IndexInfo<'a> {
    info: &'a mut raw::sqlite3_index_info,
    arguments: c_int,
}

impl<'a> IndexInfo<'a> {
    /// # Safety
    /// The pointer is SQLite's, for the call that is running.
    pub(super) unsafe fn new(info: *mut raw::sqlite3_index_info) -> Self {
        // SAFETY: by the caller's promise.
        Self { info: unsafe { &mut *info }, arguments: 0 }
    }

    /// The constraints that can be used: what they compare with is known when the search begins.
    pub fn constraints(&self) -> Vec<Constraint> {
        let count = usize::try_from(self.info.constraint_count).unwrap_or(0);
        let known = |at: usize| {
            // SAFETY: there are so many.
            let stored = unsafe { &*self.info.constraints.add(at) };
            let operator = match stored.op {
                raw::SQLITE_INDEX_CONSTRAINT_EQ => Operator::Equal,
                raw::SQLITE_INDEX_CONSTRAINT_LT => Operator::Less,
                raw::SQLITE_INDEX_CONSTRAINT_LE => Operator::LessEqual,
                raw::SQLITE_INDEX_CONSTRAINT_GT => Operator::Greater,
                raw::SQLITE_INDEX_CONSTRAINT_GE => Operator::GreaterEqual,
                raw::SQLITE_INDEX_CONSTRAINT_ISNULL => Operator::IsNull,
                raw::SQLITE_INDEX_CONSTRAINT_ISNOTNULL => Operator::IsNotNull,
                raw::SQLITE_INDEX_CONSTRAINT_LIMIT => Operator::Limit,
                raw::SQLITE_INDEX_CONSTRAINT_OFFSET => Operator::Offset,
                _ => return None,
            };
            (stored.usable != 0).then(|| Constraint {
                at,
                column: usize::try_from(stored.column).ok(),
                operator,
            })
        };
        (0..count).filter_map(known).collect()
    }

    /// How many constraints the query has, those that cannot be used among them.
    pub fn count(&self) -> usize {
        usize::try_from(self.info.constraint_count).unwrap_or(0)
    }

    /// Whether a constraint on this column or a later one cannot be used in this order of joins.
    fn has_unusable(&self, column: usize) -> bool {
        let count = usize::try_from(self.info.constraint_count).unwrap_or(0);
        (0..count).any(|at| {
            // SAFETY: there are so many.
            let stored = unsafe { &*self.info.constraints.add(at) };
            stored.usable == 0 && usize::try_from(stored.column).is_ok_and(|own| own >= column)
        })
    }

    /// The equalities with these columns, which are a function's arguments, in order. None where one of them
    /// comes from a table that has to be read before.
    pub fn arguments(&self, columns: Range<usize>) -> Option<Vec<Constraint>> {
        if self.has_unusable(columns.start) {
            return None;
        }
        let is_argument = |column: Option<usize>| column.is_some_and(|column| columns.contains(&column));
        let mut given = self.constraints();
        given.retain(|given| given.operator == Operator::Equal && is_argument(given.column));
        given.sort_by_key(|given| given.column);
        given.dedup_by_key(|given| given.column);
        Some(given)
    }

    /// The collation by which a constraint compares.
    pub fn collation(&mut self, constraint: &Constraint) -> String {
        // SAFETY: the constraint is one of these. The text is copied.
        unsafe {
            let name = raw::vtab_collation(self.info, number(constraint.at));
            if name.is_null() { "BINARY".into() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
        }
    }

    /// What a constraint compares with, if the query says so in so many words.
    pub fn literal(&mut self, constraint: &Constraint) -> Option<Argument<'_>> {
        if !raw::is_since(3_038_000) {
            return None;
        }
        let mut value = std::ptr::null_mut();
        // SAFETY: the constraint is one of these. The value stays as long as the question.
        unsafe {
            let code = raw::vtab_rhs_value(self.info, number(constraint.at), &raw mut value);
            (code == raw::SQLITE_OK && !value.is_null()).then(|| Argument::new(value))
        }
    }

    /// Asks for all values of an IN at once. True if the constraint is an IN and they will come so.
    pub fn take_list(&mut self, constraint: &Constraint) -> bool {
        // SAFETY: the constraint is one of these.
        raw::is_since(3_038_000) && unsafe { raw::vtab_in(self.info, number(constraint.at), 1) != 0 }
    }

    /// Has the constraint's value be given when the search begins, after those that were asked for before.
    /// `omit`: SQLite need not look at the condition again.
    pub fn want(&mut self, constraint: &Constraint, omit: bool) {
        self.arguments += 1;
        // SAFETY: there are as many of these as constraints.
        let usage = unsafe { &mut *self.info.usage.add(constraint.at) };
        usage.argument = self.arguments;
        usage.omit = u8::from(omit);
    }

    /// The columns by which the query wants its rows, and whether descending. None stands for the row's id.
    pub fn order(&self) -> Vec<(Option<usize>, bool)> {
        let count = usize::try_from(self.info.order_by_count).unwrap_or(0);
        let term = |at: usize| {
            // SAFETY: there are so many.
            let term = unsafe { &*self.info.order_by.add(at) };
            (usize::try_from(term.column).ok(), term.descending != 0)
        };
        (0..count).map(term).collect()
    }

    /// Rows come in the order that the query wants.
    pub fn consume_order(&mut self) {
        self.info.order_by_consumed = 1;
    }

    /// The columns that the query reads, one bit each. The last bit stands for all from the 64th on.
    pub fn columns_used(&self) -> u64 {
        self.info.columns_used
    }

    /// How the search is to be made, for the cursor.
    pub fn choose(&mut self, chosen: i32, text: &str) {
        self.info.number = chosen;
        self.info.text = module::sqlite_text(text);
        self.info.free_text = 1;
    }

    /// What the search costs, and how many rows it gives.
    pub fn estimate(&mut self, cost: f64, rows: i64, at_most_one: bool) {
        self.info.cost = cost;
        self.info.rows = rows;
        if at_most_one {
            self.info.flags |= raw::SQLITE_INDEX_SCAN_UNIQUE;
        }
    }
}

fn number(at: usize) -> c_int {
    c_int::try_from(at).unwrap_or(c_int::MAX)
}
