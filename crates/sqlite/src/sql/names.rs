//! Names of columns and tables: what a query's text means by them.
//!
//! SQLite has looked at the text before and found no name unknown or ambiguous. So the first column of a name
//! is the right one.

use sqlite3_parser::ast::Expr;

use super::planner::{Id, Planner};
use super::typed::{Typed, unsupported};
use crate::api::Result;

/// The columns of one relation in FROM.
#[derive(Debug, Clone, Default)]
pub struct Visible {
    /// The name that qualifies them.
    pub name: String,
    /// The schema, for a table without an alias.
    pub schema: Option<String>,
    /// Their names. An error where the engine cannot have a column: it says why.
    pub columns: Vec<(String, std::result::Result<Id, String>)>,
    /// The row's id, which `*` leaves out.
    pub row_id: Option<Id>,
    /// Columns that `*` leaves out, as USING has joined them to those of an earlier relation.
    pub joined: Vec<usize>,
}

/// The names that are known in one SELECT.
#[derive(Debug, Default)]
pub struct Scope<'b> {
    /// The relations of FROM.
    pub relations: Vec<Visible>,
    /// Names that the SELECT gives to its results.
    pub aliases: Vec<(String, &'b Expr<'b>)>,
}

/// What a column is called.
pub struct Reference {
    /// The table's name, if it is given.
    pub table: Option<String>,
    /// The schema's name, if it is given.
    pub schema: Option<String>,
    /// The column's name.
    pub column: String,
    /// It was written in double quotes: a text, if no column is called so.
    pub quoted: bool,
}

/// A name without its quotes.
pub fn unquoted(name: &str) -> String {
    let mut characters = name.chars();
    let (first, last) = (characters.next(), characters.next_back());
    let inner = characters.as_str();
    match (first, last) {
        (Some('"'), Some('"')) => inner.replace("\"\"", "\""),
        (Some('`'), Some('`')) => inner.replace("``", "`"),
        (Some('\''), Some('\'')) => inner.replace("''", "'"),
        (Some('['), Some(']')) => inner.into(),
        _ => name.into(),
    }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

impl Scope<'_> {
    /// The column of a name in the relations of FROM.
    fn find(&self, reference: &Reference) -> Option<std::result::Result<Id, String>> {
        let of_table = |relation: &&Visible| {
            let table = reference.table.as_deref().is_none_or(|table| same(table, &relation.name));
            let schema = match (&reference.schema, &relation.schema) {
                (Some(schema), Some(own)) => same(schema, own),
                (Some(_), None) => false,
                (None, _) => true,
            };
            table && schema
        };
        let mut columns = self.relations.iter().filter(of_table).flat_map(|relation| &relation.columns);
        if let Some((_, found)) = columns.find(|(name, _)| same(name, &reference.column)) {
            return Some(found.clone());
        }
        let is_row_id = ["rowid", "_rowid_", "oid"].iter().any(|name| same(name, &reference.column));
        let relation = self.relations.iter().filter(of_table).find(|relation| relation.row_id.is_some());
        relation.and_then(|relation| relation.row_id).filter(|_| is_row_id).map(Ok)
    }
}

/// What a name stands for.
pub enum Meaning<'b> {
    /// A column.
    Column(Id),
    /// A result of the SELECT.
    Alias(&'b Expr<'b>),
    /// A text in double quotes.
    Text(String),
}

impl<'b> Planner<'b> {
    /// What a name stands for, in this SELECT or in one around it.
    pub fn resolve(&self, reference: &Reference) -> Result<Meaning<'b>> {
        for scope in self.scopes.iter().rev() {
            match scope.find(reference) {
                Some(Ok(id)) => return Ok(Meaning::Column(id)),
                Some(Err(why)) => return Err(unsupported(&why)),
                None => {}
            }
            let mut aliases = scope.aliases.iter();
            let alias = aliases.find(|(name, _)| same(name, &reference.column));
            if let Some((_, expression)) = alias.filter(|_| reference.table.is_none()) {
                return Ok(Meaning::Alias(expression));
            }
        }
        match reference.quoted && reference.table.is_none() {
            true => Ok(Meaning::Text(reference.column.clone())),
            false => Err(unsupported(&format!("the column {}", reference.column))),
        }
    }

    /// The columns that `*`, or `table.*`, stands for.
    pub fn star(&self, table: Option<&str>) -> Result<Vec<(String, Typed)>> {
        let Some(scope) = self.scopes.last() else { return Ok(Vec::new()) };
        let mut columns = Vec::new();
        for relation in &scope.relations {
            if table.is_some_and(|table| !same(table, &relation.name)) {
                continue;
            }
            for (at, (name, id)) in relation.columns.iter().enumerate() {
                if table.is_none() && relation.joined.contains(&at) {
                    continue;
                }
                let id = id.as_ref().map_err(|why| unsupported(why))?;
                columns.push((name.clone(), self.column(*id)));
            }
        }
        Ok(columns)
    }
}
