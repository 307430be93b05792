//! `columnar_group_sum` and its like: a row for each group.

use std::ffi::CStr;
use std::rc::Rc;

use super::grouping::{Group, Question};
use super::row_function::{Answer, Row, RowFunction};
use super::scalars::range;
use super::totals::{Totals, Wanted};
use crate::api::{Argument, Connection, Error, Result, Value};
use crate::declaration::quoted;
use crate::sql::{Described, Query, Results};
use crate::table::{TableState, Tables};
use crate::values::Owned;

const ONE: &[(&str, &str)] = &[("tab", "table"), ("keycol", "key column"), ("valcol", "value column")];
const TWO: &[(&str, &str)] = &[
    ("tab", "table"),
    ("keycol", "key column"),
    ("maxcol", "column of maxima"),
    ("mincol", "column of minima"),
];
const OF_RANGE: &[(&str, &str)] = &[
    ("tab", "table"),
    ("keycol", "key column"),
    ("valcol", "value column"),
    ("filtercol", "filter column"),
    ("lo", "least value"),
    ("hi", "greatest value"),
];

const fn function(
    name: &'static CStr,
    columns: &'static [&'static str],
    arguments: &'static [(&'static str, &'static str)],
) -> RowFunction {
    RowFunction { name, columns, arguments, optional: 0, compute }
}

/// All of them.
pub static FUNCTIONS: [RowFunction; 10] = [
    function(c"columnar_group_sum", &["k", "sum"], ONE),
    function(c"columnar_group_avg", &["k", "avg"], ONE),
    RowFunction { optional: 1, ..function(c"columnar_group_count", &["k", "count"], ONE) },
    function(c"columnar_group_sum_avg_count", &["k", "sum", "avg", "count"], ONE),
    function(c"columnar_group_min", &["k", "min"], ONE),
    function(c"columnar_group_max", &["k", "max"], ONE),
    function(c"columnar_group_min_max_count", &["k", "min", "max", "count"], ONE),
    function(c"columnar_group_range", &["k", "range", "max", "min", "count"], TWO),
    function(c"columnar_group_sum_where_range", &["k", "sum"], OF_RANGE),
    function(c"columnar_group_sum_avg_count_where_range", &["k", "sum", "avg", "count"], OF_RANGE),
];

fn compute(
    function: &RowFunction,
    tables: &Rc<Tables>,
    db: Connection,
    given: &[Argument<'_>],
) -> Result<Answer> {
    let wrong = || Error::new("wrong number of arguments");
    let [table, key, values @ ..] = given else { return Err(wrong()) };
    let table = tables.find(db, *table)?;
    let wants = |column: &str| function.columns.contains(&column);
    let of_two = wants("range");
    let sum = wants("sum") || wants("avg");
    let wanted = Wanted { sum, least: wants("min") && !of_two, greatest: wants("max") && !of_two };
    let (mut columns, mut conditions) = (Vec::new(), Vec::new());
    match (of_two, values) {
        (_, []) => {}
        (_, [value]) => columns.push((table.column(*value)?, wanted)),
        (true, [first, second]) => {
            columns.push((table.column(*first)?, Wanted { greatest: true, ..wanted }));
            columns.push((table.column(*second)?, Wanted { least: true, ..wanted }));
        }
        (_, [value, filter, low, high]) => {
            columns.push((table.column(*value)?, wanted));
            conditions = range(&table, *filter, (*low, *high))?;
        }
        _ => return Err(wrong()),
    }
    let key = table.column(*key)?;
    if let Some(results) = by_query(function, tables, db, &table, (key, values))? {
        return Ok(Answer::Query(Box::new(results)));
    }
    let key = Some(key);
    let groups = Question { key, values: columns, conditions }.answer(db, &table)?;
    let row = |group: &Group| function.columns.iter().map(|column| value_of(group, column, of_two)).collect();
    groups.iter().map(row).collect::<Result<Vec<Row>>>().map(Answer::Rows)
}

/// The groups as a query of the engine's gives them. None where it cannot: rows are then looked at one by
/// one.
fn by_query(
    function: &RowFunction,
    tables: &Rc<Tables>,
    db: Connection,
    table: &TableState,
    (key, values): (usize, &[Argument<'_>]),
) -> Result<Option<Results>> {
    let columns = &table.storage.columns.0;
    let name = |column: usize| columns.get(column).map_or_else(String::new, |column| quoted(&column.name));
    let named = values.iter().take(3).map(|value| table.column(*value).map(name)).collect::<Result<Vec<_>>>();
    // Two columns, or one and that of a range with its bounds.
    let (named, bounds) = match (named, values) {
        (Ok(named), [] | [_] | [_, _]) => (named, None),
        (_, [value, filter, low, high]) => {
            (vec![name(table.column(*value)?), name(table.column(*filter)?)], Some((*low, *high)))
        }
        _ => return Ok(None),
    };
    let of_two = function.columns.contains(&"range");
    let first = named.first().cloned();
    let second = if of_two { named.get(1).cloned() } else { first.clone() };
    let (first, second) = (first.as_deref(), second.as_deref());
    let result = |column: &&str| match (*column, first, second) {
        ("k", ..) => name(key),
        ("count", None, _) => "count(*)".into(),
        ("count", Some(a), Some(b)) if of_two => {
            format!("count(*) FILTER (WHERE {a} IS NOT NULL OR {b} IS NOT NULL)")
        }
        ("range", Some(a), Some(b)) => format!("max({a}) - min({b})"),
        ("min", _, Some(b)) => format!("min({b})"),
        (function, Some(a), _) => format!("{function}({a})"),
        _ => "NULL".into(),
    };
    let results: Vec<String> = function.columns.iter().map(result).collect();
    let shadow = &table.storage.shadow;
    let place = format!("{}.{}", quoted(shadow.schema()), quoted(&shadow.name()));
    let condition = match (&bounds, named.get(1)) {
        (Some(_), Some(filter)) => format!(" WHERE {filter} BETWEEN ?1 AND ?2"),
        _ => String::new(),
    };
    let text = format!("SELECT {} FROM {place}{condition} GROUP BY {}", results.join(", "), name(key));
    let given = bounds.map_or_else(Vec::new, |(low, high)| vec![low, high]);
    let parameters = given.iter().map(|value| Owned::of(value.value())).collect();
    let described = Described { text, columns: Vec::new(), parameters: vec![String::new(); given.len()] };
    Query { db, tables, described: &described, parameters }.all()
}

fn value_of(group: &Group, column: &str, of_two: bool) -> Result<Option<Owned>> {
    let none = Totals::default();
    let first = group.totals.first().unwrap_or(&none);
    let second = if of_two { group.totals.get(1).unwrap_or(&none) } else { first };
    let counted = match (group.totals.first(), of_two) {
        (_, true) => group.some,
        (Some(first), false) => first.count,
        (None, false) => group.rows,
    };
    Ok(match column {
        "k" => group.key.clone(),
        "sum" => Owned::of(first.sum()?),
        "avg" => Owned::of(first.average()),
        "count" => Owned::of(Value::Integer(counted)),
        "min" => second.least.clone(),
        "max" => first.greatest.clone(),
        _ => Owned::of(Totals::difference(first, second)),
    })
}
