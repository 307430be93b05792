//! `columnar_query`: a SELECT that runs in the vectorised engine, as a table.
//!
//! - `SELECT c1, c2 FROM columnar_query('SELECT ...', parameter, ...)` runs a text. Its columns are called
//!   c1, c2 and so on, as SQLite wants to know a function's columns before its arguments.
//! - `CREATE VIRTUAL TABLE temp.q USING columnar_query('SELECT ...')` gives a query a name. Its columns are
//!   called as the SELECT calls them, and it takes the parameters as arguments: `SELECT * FROM q(5)`.

use std::ffi::c_int;
use std::ops::Range;
use std::rc::Rc;

use crate::api::{Argument, Connection, Context, Cursor, Error, IndexInfo, Result, Table, Value, raw};
use crate::declaration::quoted;
use crate::sql::{Described, Query, Results, Rows};
use crate::table::Tables;
use crate::values::Owned;

/// Columns of the function that `*` shows.
const SHOWN: usize = 10;
/// Columns that the function has.
const COLUMNS: usize = 60;
/// Parameters that the function takes.
const PARAMETERS: usize = 30;

/// A query as a table.
pub struct QueryTable {
    db: Connection,
    tables: Rc<Tables>,
    /// The query of a table that was made. None: the text is the first argument.
    described: Option<Described>,
    /// How many columns come before the arguments.
    columns: usize,
}

/// The rows of a query, as they come.
pub struct QueryCursor {
    /// The columns that stand for arguments.
    arguments: Range<usize>,
    results: Option<Results>,
    rows: Option<Rows>,
    at: usize,
    row: i64,
}

/// The text between the parentheses, which SQLite has cut at commas.
fn text_of(parts: &[&str]) -> String {
    let text = parts.join(", ");
    let text = text.trim();
    match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'"),
        None => text.into(),
    }
}

impl Table for QueryTable {
    type Cursor = QueryCursor;
    type Data = Tables;

    fn connect(
        db: Connection,
        data: &Rc<Tables>,
        arguments: &[&str],
        _create: bool,
    ) -> Result<(String, Self)> {
        let parts = arguments.get(3..).unwrap_or_default();
        let (names, hidden, described) = if parts.is_empty() {
            let shown = (1..=SHOWN).map(|at| format!("c{at}")).collect();
            let rest = (SHOWN + 1..=COLUMNS).map(|at| format!("c{at} HIDDEN"));
            let parameters = (1..=PARAMETERS).map(|at| format!("p{at} HIDDEN"));
            // Arguments go to the first hidden columns.
            let query = std::iter::once("query HIDDEN".to_owned());
            (shown, query.chain(parameters).chain(rest).collect::<Vec<String>>(), None)
        } else {
            let described = Described::new(db, &text_of(parts))?;
            let parameters = described.parameters.iter().enumerate().map(|(at, name)| match name.as_str() {
                "" => format!("?{}", at + 1),
                name => name.to_owned(),
            });
            let all: Vec<String> = described.columns.iter().cloned().chain(parameters).collect();
            let all: Vec<String> = distinct(&all).iter().map(|name| quoted(name)).collect();
            let (names, hidden) = all.split_at(described.columns.len());
            let hidden = hidden.iter().map(|name| format!("{name} HIDDEN")).collect();
            (names.to_vec(), hidden, Some(described))
        };
        let columns = names.len();
        let all: Vec<String> = names.into_iter().chain(hidden).collect();
        let declaration = format!("CREATE TABLE x({})", all.join(", "));
        Ok((declaration, Self { db, tables: Rc::clone(data), described, columns }))
    }

    fn best_index(&self, info: &mut IndexInfo<'_>) -> Result<()> {
        let Some(constraints) = info.arguments(self.arguments()) else {
            return Err(Error::coded(raw::SQLITE_CONSTRAINT, ""));
        };
        let given = constraints.len();
        let wanted = self.described.as_ref().map(|described| described.parameters.len());
        let in_order = constraints
            .iter()
            .enumerate()
            .all(|(at, constraint)| constraint.column == Some(self.columns + at));
        if !in_order || wanted.is_some_and(|wanted| wanted != given) || (wanted.is_none() && given == 0) {
            return Err(Error::new(match wanted {
                None => "columnar_query requires a query, then its parameters".into(),
                Some(wanted) => format!("the query has {wanted} parameters, not {given}"),
            }));
        }
        constraints.iter().for_each(|constraint| info.want(constraint, true));
        // All columns from the 64th on are one bit.
        let first = self.arguments().end;
        let hidden = (first..first + COLUMNS).any(|column| info.columns_used() >> column.min(63) & 1 == 1);
        info.choose(c_int::from(hidden), "");
        info.estimate(1e6, 1_000, false);
        Ok(())
    }

    fn open(&self) -> Result<QueryCursor> {
        Ok(QueryCursor { arguments: self.arguments(), results: None, rows: None, at: 0, row: 0 })
    }
}

impl QueryTable {
    /// The columns that stand for arguments.
    fn arguments(&self) -> Range<usize> {
        let count = self.described.as_ref().map_or(1 + PARAMETERS, |described| described.parameters.len());
        self.columns..self.columns + count
    }
}

/// Names of which none is there twice: a table's columns have to differ.
fn distinct(names: &[String]) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        let mut own = name.clone();
        let mut number = 1;
        while known.iter().any(|other| other.eq_ignore_ascii_case(&own)) {
            own = format!("{name}:{number}");
            number += 1;
        }
        known.push(own);
    }
    known
}

/// The text and the parameters of a call.
pub fn described(db: Connection, given: &[Argument<'_>]) -> Result<(Described, Vec<Option<Owned>>)> {
    let [text, parameters @ ..] = given else { return Err(Error::new("wrong number of arguments")) };
    let Value::Text(text) = text.value() else { return Err(Error::new("a query is a text")) };
    let described = Described::new(db, &String::from_utf8_lossy(text))?;
    let (wanted, count) = (described.parameters.len(), parameters.len());
    if wanted != count {
        return Err(Error::new(format!("the query has {wanted} parameters, not {count}")));
    }
    Ok((described, values_of(parameters)))
}

fn values_of(given: &[Argument<'_>]) -> Vec<Option<Owned>> {
    given.iter().map(|argument| Owned::of(argument.value())).collect()
}

impl QueryCursor {
    /// Goes on to rows that were not handed out.
    fn fill(&mut self) -> Result<()> {
        while self.rows.as_ref().is_none_or(|rows| self.at >= rows.rows) {
            let Some(results) = &mut self.results else { return Ok(()) };
            self.rows = results.next()?;
            self.at = 0;
            if self.rows.is_none() {
                self.results = None;
            }
        }
        Ok(())
    }
}

impl Cursor for QueryCursor {
    type Table = QueryTable;

    fn filter(
        &mut self,
        table: &QueryTable,
        number: c_int,
        _text: &str,
        given: &[Argument<'_>],
    ) -> Result<()> {
        (self.results, self.rows, self.at, self.row) = (None, None, 0, 0);
        let (described, parameters) = match &table.described {
            Some(described) => (described.clone(), values_of(given)),
            None => described(table.db, given)?,
        };
        let columns = described.columns.len();
        if table.described.is_none() && (columns > COLUMNS || (columns > SHOWN && number == 0)) {
            return Err(Error::new(format!(
                "the query has {columns} columns, of which * shows {SHOWN}: name them (c1, c2, ...), or give the \
                 query a name with CREATE VIRTUAL TABLE temp.q USING columnar_query('...')"
            )));
        }
        let query = Query { db: table.db, tables: &table.tables, described: &described, parameters };
        self.results = Some(query.start()?);
        self.fill()
    }

    fn next(&mut self, _table: &QueryTable) -> Result<()> {
        self.at += 1;
        self.row += 1;
        self.fill()
    }

    fn is_past_end(&self) -> bool {
        self.rows.is_none()
    }

    fn column(&mut self, context: &mut Context<'_>, column: usize) -> Result<()> {
        let column = match self.arguments.contains(&column) {
            true => usize::MAX,
            false if column >= self.arguments.end => column - self.arguments.len(),
            false => column,
        };
        // Arguments, and columns that the query has not, are NULL.
        match &self.rows {
            Some(rows) => context.set(rows.get(self.at, column)?),
            None => context.set(Value::Null),
        }
        Ok(())
    }

    fn row_id(&self) -> Result<i64> {
        Ok(self.row)
    }
}
