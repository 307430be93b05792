//! `columnar_sum`, `columnar_avg` and `columnar_count`, over all rows or those of a range.

use std::rc::Rc;

use super::grouping::{Group, Question, collation_of};
use super::totals::{Totals, Wanted};
use crate::api::{Argument, Connection, Context, Error, Result, Value};
use crate::scan::Condition;
use crate::table::{TableState, Tables};

/// What of a column is the result.
type Wish = fn(&Totals) -> Result<Value<'static>>;

/// The condition that a column lies between two values.
pub fn range(
    table: &TableState,
    filter: Argument<'_>,
    bounds: (Argument<'_>, Argument<'_>),
) -> Result<Vec<Condition>> {
    let column = table.column(filter)?;
    let place = table.storage.columns.place(column);
    let affinity = table.storage.columns.affinity_at(place);
    Ok(Condition::between(place, affinity, collation_of(table, column)?, bounds).to_vec())
}

fn totals(tables: &Tables, db: Connection, arguments: &[Argument<'_>], sum: bool) -> Result<Totals> {
    let wrong = || Error::new("wrong number of arguments");
    let [table, column, rest @ ..] = arguments else { return Err(wrong()) };
    let table: Rc<TableState> = tables.find(db, *table)?;
    let column = table.column(*column)?;
    let conditions = match rest {
        [] => Vec::new(),
        [filter, low, high] => range(&table, *filter, (*low, *high))?,
        _ => return Err(wrong()),
    };
    let values = vec![(column, Wanted { sum, ..Wanted::default() })];
    let groups = Question { key: None, values, conditions }.answer(db, &table)?;
    let totals = groups.into_iter().next().and_then(|group: Group| group.totals.into_iter().next());
    Ok(totals.unwrap_or_default())
}

fn give(
    tables: &Tables,
    context: &mut Context<'_>,
    arguments: &[Argument<'_>],
    sum: bool,
    of: Wish,
) -> Result<()> {
    let totals = totals(tables, context.connection(), arguments, sum)?;
    context.set(of(&totals)?);
    Ok(())
}

/// The sum of a column: an integer of integers, else a real. NULL of no value.
pub fn sum(tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    give(tables, context, arguments, true, Totals::sum)
}

/// The average of a column.
pub fn average(tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    give(tables, context, arguments, true, |totals| Ok(totals.average()))
}

/// The rows of a table, or the values of a column that are not NULL.
pub fn count(tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    if let [table] = arguments {
        let table = tables.find(context.connection(), *table)?;
        context.set(Value::Integer(table.storage.live_rows()));
        return Ok(());
    }
    give(tables, context, arguments, false, |totals| Ok(Value::Integer(totals.count)))
}

/// Does nothing but look for the table: statistics are written with each stripe. The number of statistics
/// that had to be made anew is always 0.
pub fn analyze(tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let [table] = arguments else { return Err(Error::new("wrong number of arguments")) };
    tables.find(context.connection(), *table)?;
    context.set(Value::Integer(0));
    Ok(())
}
