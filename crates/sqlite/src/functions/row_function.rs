//! Table-valued functions: the common part.
//!
//! Arguments are hidden columns of the function's table. They come as equalities, which the planner is told
//! to hand over in the order of the columns. All rows are computed when the search begins.

use std::ffi::{CStr, c_int};
use std::rc::Rc;

use crate::api::{Argument, Connection, Context, Cursor, Error, IndexInfo, Result, Table, Value, raw};
use crate::sql::{Results, Rows};
use crate::table::Tables;
use crate::values::Owned;

/// A row of a result. None is NULL.
pub type Row = Vec<Option<Owned>>;

/// The rows of a function.
pub enum Answer {
    /// All of them.
    Rows(Vec<Row>),
    /// A query that gives them.
    Query(Box<Results>),
}

/// Computes the rows of a function, of which it is given the arguments.
pub type Compute = fn(&RowFunction, &Rc<Tables>, Connection, &[Argument<'_>]) -> Result<Answer>;

/// A table-valued function.
pub struct RowFunction {
    /// Its name.
    pub name: &'static CStr,
    /// The names of its columns.
    pub columns: &'static [&'static str],
    /// The names of its arguments, and what each is in an error.
    pub arguments: &'static [(&'static str, &'static str)],
    /// How many of the last arguments may be left out.
    pub optional: usize,
    /// Computes the rows.
    pub compute: Compute,
}

/// All functions of a connection.
pub struct Functions {
    /// The functions.
    pub all: &'static [&'static [RowFunction]],
    /// The tables that they are about.
    pub tables: Rc<Tables>,
}

/// A function as a table.
pub struct FunctionTable {
    db: Connection,
    tables: Rc<Tables>,
    function: &'static RowFunction,
}

/// The rows of a function, one after the other.
pub struct FunctionCursor {
    db: Connection,
    rows: Vec<Row>,
    /// The query that gives rows, and those of it that are being handed out.
    query: Option<(Box<Results>, Option<Rows>)>,
    at: usize,
    row: i64,
}

impl FunctionCursor {
    /// Goes on to rows of the query that were not handed out.
    fn fill(&mut self) -> Result<()> {
        let Some((results, rows)) = &mut self.query else { return Ok(()) };
        while rows.as_ref().is_none_or(|rows| self.at >= rows.rows) {
            *rows = results.next()?;
            self.at = 0;
            if rows.is_none() {
                self.query = None;
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Table for FunctionTable {
    type Cursor = FunctionCursor;
    type Data = Functions;

    fn connect(
        db: Connection,
        data: &Rc<Functions>,
        arguments: &[&str],
        _create: bool,
    ) -> Result<(String, Self)> {
        let name = arguments.first().copied().unwrap_or_default();
        let mut all = data.all.iter().copied().flatten();
        let function = all.find(|function| function.name.to_str() == Ok(name));
        let function = function.ok_or_else(|| Error::new(format!("no function {name}")))?;
        let hidden =
            function.arguments.iter().map(|(name, _)| format!(", {name} HIDDEN")).collect::<String>();
        let declaration = format!("CREATE TABLE x({}{hidden})", function.columns.join(", "));
        Ok((declaration, Self { db, tables: Rc::clone(&data.tables), function }))
    }

    fn best_index(&self, info: &mut IndexInfo<'_>) -> Result<()> {
        let first = self.function.columns.len();
        let (most, optional) = (self.function.arguments.len(), self.function.optional);
        let Some(constraints) = info.arguments(first..first + most) else {
            return Err(Error::coded(raw::SQLITE_CONSTRAINT, ""));
        };
        let given = constraints.len();
        if !(most - optional..=most).contains(&given) {
            let name = self.function.name.to_string_lossy();
            let words: Vec<&str> = self.function.arguments.iter().map(|(_, word)| *word).collect();
            return Err(Error::new(format!("{name} requires {}", words.join(", "))));
        }
        constraints.iter().for_each(|constraint| info.want(constraint, true));
        info.choose(0, "");
        info.estimate(1e5, 1_000, false);
        Ok(())
    }

    fn open(&self) -> Result<FunctionCursor> {
        Ok(FunctionCursor { db: self.db, rows: Vec::new(), query: None, at: 0, row: 0 })
    }
}

impl Cursor for FunctionCursor {
    type Table = FunctionTable;

    fn filter(
        &mut self,
        table: &FunctionTable,
        _number: c_int,
        _text: &str,
        given: &[Argument<'_>],
    ) -> Result<()> {
        (self.rows, self.query, self.at, self.row) = (Vec::new(), None, 0, 0);
        match (table.function.compute)(table.function, &table.tables, self.db, given)? {
            Answer::Rows(rows) => self.rows = rows,
            Answer::Query(results) => self.query = Some((results, None)),
        }
        self.fill()
    }

    fn next(&mut self, _table: &FunctionTable) -> Result<()> {
        self.at += 1;
        self.row += 1;
        self.fill()
    }

    fn is_past_end(&self) -> bool {
        self.query.is_none() && self.at >= self.rows.len()
    }

    fn column(&mut self, context: &mut Context<'_>, column: usize) -> Result<()> {
        if let Some((_, Some(rows))) = &self.query {
            context.set(rows.get(self.at, column)?);
            return Ok(());
        }
        // Arguments are not read back.
        let value = self.rows.get(self.at).and_then(|row| row.get(column)).and_then(Option::as_ref);
        context.set(value.map_or(Value::Null, Owned::value));
        Ok(())
    }

    fn row_id(&self) -> Result<i64> {
        Ok(self.row)
    }
}

impl Functions {
    /// Makes all of them known.
    pub fn register(self, db: Connection) -> Result<()> {
        let functions = Rc::new(self);
        let mut all = functions.all.iter().copied().flatten();
        all.try_for_each(|function| db.register_computed::<FunctionTable>(function.name, &functions))
    }
}
