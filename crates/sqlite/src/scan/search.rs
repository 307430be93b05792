//! How a query's rows are found: chosen when the query is planned, and handed to the cursor as a text.
//!
//! A constraint is taken if the engine can leave out rows by it. SQLite need not look at it again (`omit`)
//! only where the comparison that SQLite would make is known by then. Which one it makes depends on the
//! affinities of both sides (https://www.sqlite.org/datatype3.html#affinity), and a virtual table is told
//! only its own:
//!
//! - A column of numeric affinity makes a number of text on the other side, whatever stands there.
//! - Other columns are compared with a literal or a parameter, which have no affinity, in a known way. Beside
//!   a column of another table they might have become numbers themselves. Such a term is used for equality of
//!   text alone, which comes out the same.
//! - Text is compared by a collation. Only BINARY is known here.

use std::fmt::Write;

use crate::api::{Constraint, Error, IndexInfo, Operator, Result, Value, raw};
use crate::declaration::Columns;
use crate::storage::Storage;
use crate::values::{Affinity, OrderKey};

/// A condition that the cursor gets a value for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Where the column lies in a stripe and in the tail.
    pub place: usize,
    /// How it compares.
    pub operator: Operator,
    /// The value is the list of an IN.
    pub is_list: bool,
    /// The other side is a literal.
    pub is_literal: bool,
    /// Text is compared bytewise.
    pub is_binary: bool,
    /// SQLite does not look at the condition again.
    pub is_omitted: bool,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Search {
    /// The columns that are read, by their places.
    pub places: Vec<usize>,
    /// The conditions, in the order of their values.
    pub terms: Vec<Term>,
    /// The order in which rows come. Empty: any.
    pub order: Vec<OrderKey>,
    /// After the values of terms come so many numbers whose sum is the number of rows that are wanted.
    pub limits: usize,
}

const OPERATORS: [(Operator, char); 7] = [
    (Operator::Equal, '='),
    (Operator::Less, '<'),
    (Operator::LessEqual, 'l'),
    (Operator::Greater, '>'),
    (Operator::GreaterEqual, 'g'),
    (Operator::IsNull, 'n'),
    (Operator::IsNotNull, 'v'),
];

impl Search {
    /// As a text for SQLite to keep.
    pub fn to_text(&self) -> String {
        let mut text: String = self.places.iter().map(|place| format!("{place},")).collect();
        for key in &self.order {
            let _ = write!(text, ";{}{}", if key.descending { 'D' } else { 'A' }, key.place);
        }
        for _ in 0..self.limits {
            text.push_str(";L");
        }
        for term in &self.terms {
            let operator = OPERATORS.iter().find(|(operator, _)| *operator == term.operator);
            let flags =
                [(term.is_list, 'i'), (term.is_literal, 'c'), (term.is_binary, 'b'), (term.is_omitted, 'o')];
            let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter).collect();
            let _ = write!(text, ";{}{}{flags}", operator.map_or('?', |(_, letter)| *letter), term.place);
        }
        text
    }

    /// What `to_text` has written.
    pub fn from_text(text: &str) -> Result<Self> {
        let bad = || Error::new(format!("no search: {text}"));
        let mut parts = text.split(';');
        let places = parts.next().unwrap_or("").split(',').filter(|place| !place.is_empty());
        let places = places.map(|place| place.parse().map_err(|_| bad())).collect::<Result<_>>()?;
        let (mut order, mut limits) = (Vec::new(), 0);
        let mut rest = Vec::new();
        for part in parts {
            let key = |place: &str, descending| {
                Ok::<_, Error>(OrderKey { place: place.parse().map_err(|_| bad())?, descending })
            };
            match (part, part.strip_prefix('A'), part.strip_prefix('D')) {
                ("L", ..) => limits += 1,
                (_, Some(place), _) => order.push(key(place, false)?),
                (_, _, Some(place)) => order.push(key(place, true)?),
                _ => rest.push(part),
            }
        }
        let term = |part: &str| {
            let mut letters = part.chars();
            let letter = letters.next().ok_or_else(bad)?;
            let (operator, _) = OPERATORS.iter().find(|(_, own)| *own == letter).ok_or_else(bad)?;
            let rest = letters.as_str();
            let place = rest.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let flags = &rest[place.len()..];
            Ok(Term {
                place: place.parse().map_err(|_| bad())?,
                operator: *operator,
                is_list: flags.contains('i'),
                is_literal: flags.contains('c'),
                is_binary: flags.contains('b'),
                is_omitted: flags.contains('o'),
            })
        };
        let terms = rest.into_iter().map(term).collect::<Result<_>>()?;
        Ok(Self { places, terms, order, limits })
    }
}

/// The columns that a query reads, by their places.
fn places(columns: &Columns, used: u64) -> Vec<usize> {
    let reads = |column: usize| used >> column.min(63) & 1 == 1;
    let mut places: Vec<usize> =
        (0..columns.0.len()).filter(|&column| reads(column)).map(|column| columns.place(column)).collect();
    places.sort_unstable();
    places
}

/// Which share of the rows a condition leaves, as a guess.
fn share(operator: Operator) -> f64 {
    match operator {
        Operator::Equal => 0.01,
        Operator::IsNull => 0.05,
        Operator::IsNotNull => 0.95,
        _ => 0.3,
    }
}

/// The first version whose LIMIT can be relied on, to be on the safe side: the mend is of 2024.
const LIMIT_IS_TOLD: i32 = 3_047_000;

/// Most values that are brought into order in memory, and most stored bytes of rows: SQLite's own sorting
/// goes to disk.
const SORTED_VALUES: f64 = 5e7;
const SORTED_BYTES: f64 = 256e6;

/// Answers the planner.
pub fn choose(storage: &Storage, info: &mut IndexInfo<'_>) -> Result<()> {
    // Where another connection has changed the schema, SQLite gets to know of it once the statement runs, and
    // plans it anew. Until then nothing can be read.
    let _ = storage.directory.refresh();
    let columns = &storage.columns;
    let mut search = Search { places: places(columns, info.columns_used()), ..Search::default() };
    let total: f64 =
        storage.directory.entries().iter().map(|entry| f64::from(entry.rows - entry.dead_rows)).sum();
    let total = (total + f64::from(storage.directory.tail_rows())).max(1.0);
    let mut rows = total;
    let mut one = false;
    let constraints = info.constraints();
    let is_limit =
        |constraint: &Constraint| matches!(constraint.operator, Operator::Limit | Operator::Offset);
    for constraint in constraints.iter().filter(|constraint| !is_limit(constraint)) {
        let place = constraint.column.map_or(0, |column| columns.place(column));
        let affinity = match (place, constraint.column.and_then(|column| columns.0.get(column))) {
            (0, _) | (_, None) => Affinity::Numeric,
            (_, Some(column)) => column.affinity,
        };
        let term = term(info, constraint, place, affinity);
        info.want(constraint, term.is_omitted);
        one |= place == 0 && term.operator == Operator::Equal && !term.is_list;
        rows *= share(term.operator);
        search.terms.push(term);
    }
    let rows = if one { 1.0 } else { rows.max(1.0) };
    #[allow(clippy::cast_precision_loss)]
    let stored: f64 = storage.directory.entries().iter().map(|entry| entry.bytes as f64).sum();
    let fits =
        rows * (search.places.len() + 1) as f64 <= SORTED_VALUES && stored * rows / total <= SORTED_BYTES;
    if !one && fits {
        take_order(columns, info, &mut search);
    }
    // Rows may be left out only if SQLite is going to leave none out itself. Older versions hand over the
    // LIMIT of a query that compares two columns of the table as well, and do not tell of that condition.
    let limits: Vec<&Constraint> = constraints.iter().filter(|constraint| is_limit(constraint)).collect();
    let all =
        search.terms.len() + limits.len() == info.count() && search.terms.iter().all(|term| term.is_omitted);
    if all
        && raw::is_since(LIMIT_IS_TOLD)
        && !search.order.is_empty()
        && limits.iter().any(|limit| limit.operator == Operator::Limit)
    {
        limits.iter().for_each(|limit| info.want(limit, false));
        search.limits = limits.len();
    }
    // Conditions are looked at on encoded data, which costs less than to give SQLite a row.
    let looked = if one { 20.0 } else { total * 0.05 };
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    info.estimate(looked + rows * (1.0 + search.places.len() as f64 * 0.3), rows as i64, one);
    info.choose(0, &search.to_text());
    Ok(())
}

/// Takes over the order that the query wants, if it is one by columns whose order is known.
fn take_order(columns: &Columns, info: &mut IndexInfo<'_>, search: &mut Search) {
    let known = |(column, descending): (Option<usize>, bool)| {
        let place = column.map_or(0, |column| columns.place(column));
        let bytewise =
            columns.at_place(place).is_none_or(|column| column.collation.eq_ignore_ascii_case("BINARY"));
        bytewise.then_some(OrderKey { place, descending })
    };
    let Some(order) = info.order().into_iter().map(known).collect::<Option<Vec<_>>>() else { return };
    if order.is_empty() {
        return;
    }
    // Equal rows are all given, also where the query wants each once: which of them pass a condition on the
    // row's id is not known here.
    search.order = order;
    info.consume_order();
}

fn term(info: &mut IndexInfo<'_>, constraint: &Constraint, place: usize, affinity: Affinity) -> Term {
    let operator = constraint.operator;
    let is_binary = info.collation(constraint).eq_ignore_ascii_case("BINARY");
    let literal =
        info.literal(constraint).map(|literal| matches!(literal.value(), Value::Text(_) | Value::Blob(_)));
    let is_literal = literal.is_some();
    let is_list = operator == Operator::Equal && info.take_list(constraint);
    let compares = !matches!(operator, Operator::IsNull | Operator::IsNotNull);
    let known = affinity.is_numeric() || (affinity == Affinity::Text && literal == Some(true) && !is_list);
    Term { place, operator, is_list, is_literal, is_binary, is_omitted: !compares || (is_binary && known) }
}

#[cfg(test)]
mod tests {
    use super::{Operator, OrderKey, Search, Term};

    #[test]
    fn a_search_comes_back_from_its_text() {
        let term = Term {
            place: 12,
            operator: Operator::GreaterEqual,
            is_list: false,
            is_literal: true,
            is_binary: true,
            is_omitted: false,
        };
        let other = Term { place: 0, operator: Operator::IsNull, is_list: true, ..term };
        let order = vec![OrderKey { place: 3, descending: true }, OrderKey { place: 0, descending: false }];
        let search = Search { places: vec![0, 3, 70], terms: vec![term, other], order, limits: 2 };
        assert_eq!(Search::from_text(&search.to_text()).unwrap(), search);
        let none = Search::default();
        assert_eq!(Search::from_text(&none.to_text()).unwrap(), none);
        assert!(Search::from_text("1,x").is_err() && Search::from_text("1;?3").is_err());
    }
}
