//! `columnar_group_sum` and its like: table-valued functions that give a row for each group.
//!
//! Arguments are hidden columns of the function's table. They come as equalities, which the planner is told
//! to hand over in the order of the columns.

use std::ffi::{CStr, c_int};
use std::rc::Rc;

use super::grouping::{Group, Question};
use super::scalars::range;
use super::totals::{Totals, Wanted};
use crate::api::{
    Argument, Connection, Context, Cursor, Error, IndexInfo, Operator, Result, Table, Value, raw,
};
use crate::table::Tables;
use crate::values::Owned;

/// A column of a function's result, after the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Sum,
    Average,
    Count,
    Min,
    Max,
    /// The greatest value of one column less the least of another.
    Range,
    /// Of two columns: the greatest value of the first, the least of the second.
    MaxOfFirst,
    MinOfSecond,
    /// Rows in which one of two columns is not NULL.
    Some,
}

impl Output {
    const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Average => "avg",
            Self::Count | Self::Some => "count",
            Self::Min | Self::MinOfSecond => "min",
            Self::Max | Self::MaxOfFirst => "max",
            Self::Range => "range",
        }
    }
}

/// A function.
struct Function {
    name: &'static CStr,
    outputs: &'static [Output],
    arguments: &'static [&'static str],
    /// Arguments that may be left out.
    optional: usize,
}

const ONE: &[&str] = &["tab", "keycol", "valcol"];
const TWO: &[&str] = &["tab", "keycol", "maxcol", "mincol"];
const OF_RANGE: &[&str] = &["tab", "keycol", "valcol", "filtercol", "lo", "hi"];

const fn function(
    name: &'static CStr,
    outputs: &'static [Output],
    arguments: &'static [&'static str],
) -> Function {
    Function { name, outputs, arguments, optional: 0 }
}

static FUNCTIONS: [Function; 10] = [
    function(c"columnar_group_sum", &[Output::Sum], ONE),
    function(c"columnar_group_avg", &[Output::Average], ONE),
    Function { optional: 1, ..function(c"columnar_group_count", &[Output::Count], ONE) },
    function(c"columnar_group_sum_avg_count", &[Output::Sum, Output::Average, Output::Count], ONE),
    function(c"columnar_group_min", &[Output::Min], ONE),
    function(c"columnar_group_max", &[Output::Max], ONE),
    function(c"columnar_group_min_max_count", &[Output::Min, Output::Max, Output::Count], ONE),
    function(
        c"columnar_group_range",
        &[Output::Range, Output::MaxOfFirst, Output::MinOfSecond, Output::Some],
        TWO,
    ),
    function(c"columnar_group_sum_where_range", &[Output::Sum], OF_RANGE),
    function(
        c"columnar_group_sum_avg_count_where_range",
        &[Output::Sum, Output::Average, Output::Count],
        OF_RANGE,
    ),
];

/// A function as a table.
pub struct GroupFunction {
    db: Connection,
    tables: Rc<Tables>,
    function: &'static Function,
}

/// The groups, one after the other.
pub struct Groups {
    db: Connection,
    tables: Rc<Tables>,
    function: &'static Function,
    groups: Vec<Group>,
    /// The values of a column are counted, not rows.
    counts_values: bool,
    at: usize,
}

impl Table for GroupFunction {
    type Cursor = Groups;
    type Data = Tables;

    fn connect(
        db: Connection,
        data: &Rc<Tables>,
        arguments: &[&str],
        _create: bool,
    ) -> Result<(String, Self)> {
        let name = arguments.first().copied().unwrap_or_default();
        let named = |function: &&Function| function.name.to_str() == Ok(name);
        let function =
            FUNCTIONS.iter().find(named).ok_or_else(|| Error::new(format!("no function {name}")))?;
        let outputs =
            function.outputs.iter().map(|output| format!(", {}", output.name())).collect::<String>();
        let hidden = function.arguments.iter().map(|name| format!(", {name} HIDDEN")).collect::<String>();
        Ok((format!("CREATE TABLE x(k{outputs}{hidden})"), Self { db, tables: Rc::clone(data), function }))
    }

    fn best_index(&self, info: &mut IndexInfo<'_>) -> Result<()> {
        let first = 1 + self.function.outputs.len();
        let mut constraints = info.constraints();
        constraints.retain(|constraint| {
            constraint.operator == Operator::Equal && constraint.column.is_some_and(|column| column >= first)
        });
        constraints.sort_by_key(|constraint| constraint.column);
        constraints.dedup_by_key(|constraint| constraint.column);
        let given = constraints.len();
        let (most, optional) = (self.function.arguments.len(), self.function.optional);
        if !(most - optional..=most).contains(&given) {
            if info.has_unusable(first) {
                // The arguments come from a table that has to be read before.
                return Err(Error::coded(raw::SQLITE_CONSTRAINT, ""));
            }
            let name = self.function.name.to_string_lossy();
            return Err(Error::new(format!("{name} requires {}", describe(self.function))));
        }
        constraints.iter().for_each(|constraint| info.want(constraint, true));
        info.choose(0, "");
        info.estimate(1e5, 1_000, false);
        Ok(())
    }

    fn open(&self) -> Result<Groups> {
        let (db, tables, function) = (self.db, Rc::clone(&self.tables), self.function);
        Ok(Groups { db, tables, function, groups: Vec::new(), counts_values: false, at: 0 })
    }
}

fn describe(function: &Function) -> String {
    let word = |name: &&str| match *name {
        "tab" => "table",
        "keycol" => "key column",
        "valcol" => "value column",
        "maxcol" => "column of maxima",
        "mincol" => "column of minima",
        "filtercol" => "filter column",
        "lo" => "least value",
        _ => "greatest value",
    };
    let words: Vec<&str> = function.arguments.iter().map(word).collect();
    words.join(", ")
}

impl Cursor for Groups {
    type Table = GroupFunction;

    fn filter(
        &mut self,
        _table: &GroupFunction,
        _number: c_int,
        _text: &str,
        given: &[Argument<'_>],
    ) -> Result<()> {
        let wrong = || Error::new("wrong number of arguments");
        let [table, key, values @ ..] = given else { return Err(wrong()) };
        let table = self.tables.find(self.db, *table)?;
        let wants = |output: Output| self.function.outputs.contains(&output);
        let sum = wants(Output::Sum) || wants(Output::Average);
        let wanted = Wanted { sum, least: wants(Output::Min), greatest: wants(Output::Max) };
        let (mut columns, mut conditions) = (Vec::new(), Vec::new());
        match (self.function.arguments.len(), values) {
            (_, []) => {}
            (_, [value]) => columns.push((table.column(*value)?, wanted)),
            (4, [first, second]) => {
                columns.push((table.column(*first)?, Wanted { greatest: true, ..wanted }));
                columns.push((table.column(*second)?, Wanted { least: true, ..wanted }));
            }
            (6, [value, filter, low, high]) => {
                columns.push((table.column(*value)?, wanted));
                conditions = range(&table, *filter, (*low, *high))?;
            }
            _ => return Err(wrong()),
        }
        self.counts_values = !columns.is_empty();
        let key = Some(table.column(*key)?);
        let question = Question { key, values: columns, some: wants(Output::Some), conditions };
        (self.groups, self.at) = (question.answer(self.db, &table)?, 0);
        Ok(())
    }

    fn next(&mut self, _table: &GroupFunction) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn is_past_end(&self) -> bool {
        self.at >= self.groups.len()
    }

    fn column(&mut self, context: &mut Context<'_>, column: usize) -> Result<()> {
        let Some(group) = self.groups.get(self.at) else { return Ok(()) };
        let none = Totals::default();
        let first = group.totals.first().unwrap_or(&none);
        let second = group.totals.get(1).unwrap_or(&none);
        let owned = |value: &Option<Owned>, context: &mut Context<'_>| {
            context.set(value.as_ref().map_or(Value::Null, Owned::value));
        };
        let Some(output) = column.checked_sub(1) else {
            owned(&group.key, context);
            return Ok(());
        };
        match self.function.outputs.get(output) {
            // Arguments are not read back.
            None => context.set(Value::Null),
            Some(Output::Sum) => context.set(first.sum()?),
            Some(Output::Average) => context.set(first.average()),
            Some(Output::Count) => {
                context.set(Value::Integer(if self.counts_values { first.count } else { group.rows }));
            }
            Some(Output::Min) => owned(&first.least, context),
            Some(Output::Max | Output::MaxOfFirst) => owned(&first.greatest, context),
            Some(Output::MinOfSecond) => owned(&second.least, context),
            Some(Output::Range) => context.set(Totals::difference(first, second)),
            Some(Output::Some) => context.set(Value::Integer(group.some.unwrap_or(group.rows))),
        }
        Ok(())
    }

    fn row_id(&self) -> Result<i64> {
        Ok(i64::try_from(self.at).unwrap_or(i64::MAX))
    }
}

/// Makes all of them known.
pub fn register(db: Connection, tables: &Rc<Tables>) -> Result<()> {
    FUNCTIONS.iter().try_for_each(|function| db.register_computed::<GroupFunction>(function.name, tables))
}
