//! What stands between the parentheses of `CREATE VIRTUAL TABLE t USING columnar(...)`.
//!
//! SQLite gives each part between commas as a text. Options are `name = value`; all others are definitions of
//! columns and constraints in SQLite's own words. Those are not parsed here: they become the definition of
//! the table's tail, an ordinary table, and SQLite says what it made of them (`Columns::read`). So types,
//! quotes and constraints mean what they mean elsewhere, and errors are SQLite's own.

use crate::api::{Connection, Error, Result};
use crate::values::{Affinity, OrderKey};

/// Rows of a stripe, unless the user says otherwise.
const STRIPE_ROWS: u32 = 131_072;
/// Rows of a chunk, unless the user says otherwise.
const CHUNK_ROWS: u32 = 16_384;

/// Options of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Rows of a chunk: what is decoded at once.
    pub chunk_rows: u32,
    /// Rows of a stripe: what is written at once.
    pub stripe_rows: u32,
    /// The block codec.
    pub codec: encodings::Codec,
    /// Its level.
    pub level: i32,
    /// What rows of a stripe are sorted by: columns, and whether the greatest comes first.
    pub orderby: Vec<(String, bool)>,
}

impl Default for Options {
    fn default() -> Self {
        let (chunk_rows, stripe_rows) = (CHUNK_ROWS, STRIPE_ROWS);
        Self { chunk_rows, stripe_rows, codec: encodings::Codec::Zstd, level: 3, orderby: Vec::new() }
    }
}

/// The parts, told apart.
#[derive(Debug, Default)]
pub struct Declaration<'a> {
    /// Options.
    pub options: Options,
    /// Definitions of columns and constraints, as they were written.
    pub definitions: Vec<&'a str>,
}

impl<'a> Declaration<'a> {
    /// Tells the parts apart.
    pub fn parse(parts: &[&'a str]) -> Result<Self> {
        let mut declaration = Self::default();
        for part in parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
            match option(part) {
                Some((name, value)) => declaration.options.set(name, value)?,
                None if has_words(part, &["ON", "CONFLICT"]) => {
                    return Err(Error::new("columnar cannot keep to ON CONFLICT in a definition"));
                }
                None => declaration.definitions.push(part),
            }
        }
        let Options { chunk_rows, stripe_rows, .. } = declaration.options;
        declaration.options.stripe_rows = stripe_rows.max(chunk_rows);
        match declaration.definitions.is_empty() {
            true => Err(Error::new("columnar requires at least one column")),
            false => Ok(declaration),
        }
    }
}

/// Name and value, if this part is an option: a bare word and an equals sign.
pub fn option(part: &str) -> Option<(&str, &str)> {
    let (name, value) = part.split_once('=')?;
    let name = name.trim();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(word)).then(|| (name, unquoted(value.trim())))
}

/// The option as it is written among definitions. None if it is no option.
pub fn shown_option(part: &str) -> Option<String> {
    option(part.trim()).map(|(name, value)| format!("{name}={}", literal(value)))
}

/// `name`, `name ASC` or `name DESC`.
fn order_key(part: &str) -> Result<(String, bool)> {
    let part = part.trim();
    let (name, word) = part.rsplit_once(char::is_whitespace).unwrap_or((part, ""));
    let (name, descending) = match word.to_ascii_uppercase().as_str() {
        "DESC" => (name, true),
        "ASC" => (name, false),
        _ => (part, false),
    };
    match unquoted(name.trim()) {
        "" => Err(Error::new("orderby names a column, or several between commas")),
        name => Ok((name.to_owned(), descending)),
    }
}

fn unquoted(value: &str) -> &str {
    for quote in ['\'', '"'] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

impl Options {
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let number = |least: u32, most: u32| match value.parse::<u32>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(Error::new(format!("{name} must be from {least} to {most}, not '{value}'"))),
        };
        match name.to_ascii_lowercase().as_str() {
            "chunk_rows" => self.chunk_rows = number(1_000, 1 << 20)?,
            "stripe_rows" => self.stripe_rows = number(1_000, 10_000_000)?,
            "compression" => {
                self.codec = match value.to_ascii_lowercase().as_str() {
                    "none" => encodings::Codec::None,
                    "lz4" => encodings::Codec::Lz4,
                    "zstd" => encodings::Codec::Zstd,
                    _ => {
                        return Err(Error::new(format!(
                            "compression must be none, lz4 or zstd, not '{value}'"
                        )));
                    }
                };
            }
            "compression_level" => self.level = i32::try_from(number(1, 19)?).unwrap_or(3),
            "orderby" => self.orderby = value.split(',').map(order_key).collect::<Result<_>>()?,
            _ => return Err(Error::new(format!("columnar has no option '{name}'"))),
        }
        Ok(())
    }
}

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its declared type.
    pub declared: String,
    /// The affinity that follows from it.
    pub affinity: Affinity,
    /// The collation by which it is compared.
    pub collation: String,
    /// NULL is refused.
    pub not_null: bool,
    /// It is another name of the row's id.
    pub is_row_id: bool,
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(pub Vec<ColumnDefinition>);

impl Columns {
    /// What SQLite made of the definitions in an ordinary table. An error names what a columnar table cannot
    /// keep to.
    pub fn read(db: Connection, schema: &str, table: &str) -> Result<Self> {
        let refuse = |what: &str| Err(Error::new(format!("columnar cannot keep to {what}")));
        let info = db.prepare(&format!("PRAGMA {}.table_xinfo({})", quoted(schema), quoted(table)))?;
        let mut columns = Vec::new();
        while info.step()? {
            let (name, declared) = (info.text(1), info.text(2));
            if name == TAIL_ID {
                continue;
            }
            let key = info.integer(5);
            if info.integer(6) != 0 {
                return refuse(&format!("generated columns, as {name} is one"));
            }
            if !matches!(info.value(4), crate::api::Value::Null) {
                return refuse(&format!(
                    "DEFAULT, as of column {name}: SQLite does not tell a virtual table which columns an INSERT has left out"
                ));
            }
            let affinity = Affinity::of_type(&declared);
            let collation = db.collation(schema, table, &name)?;
            let not_null = info.integer(3) != 0 || key != 0;
            let is_row_id = key != 0 && declared.eq_ignore_ascii_case("INTEGER");
            columns.push(ColumnDefinition { name, declared, affinity, collation, not_null, is_row_id });
        }
        if db
            .query_integer(&format!(
                "SELECT 1 FROM {}.pragma_foreign_key_list({})",
                quoted(schema),
                literal(table)
            ))
            .is_ok_and(|found| found.is_some())
        {
            return refuse("REFERENCES");
        }
        let indexes = db.prepare(&format!("PRAGMA {}.index_list({})", quoted(schema), quoted(table)))?;
        if indexes.step()? {
            return refuse("UNIQUE, or a PRIMARY KEY that is not one column of type INTEGER");
        }
        Ok(Self(columns))
    }

    /// The CREATE TABLE statement that tells SQLite of the columns.
    pub fn declaration(&self) -> String {
        let column = |column: &ColumnDefinition| {
            let ColumnDefinition { name, declared, collation, not_null, .. } = column;
            let not_null = if *not_null { " NOT NULL" } else { "" };
            format!("{} {declared} COLLATE {}{not_null}", quoted(name), quoted(collation))
        };
        let columns: Vec<String> = self.0.iter().map(column).collect();
        format!("CREATE TABLE x({})", columns.join(", "))
    }

    /// What rows of a stripe are sorted by.
    pub fn order(&self, options: &Options) -> Result<Vec<OrderKey>> {
        let key = |(name, descending): &(String, bool)| {
            let column = self.0.iter().position(|column| column.name.eq_ignore_ascii_case(name));
            let column = column.ok_or_else(|| Error::new(format!("orderby names no column: {name}")))?;
            Ok(OrderKey { place: self.place(column), descending: *descending })
        };
        options.orderby.iter().map(key).collect()
    }

    /// Which column is another name of the row's id.
    pub fn row_id(&self) -> Option<usize> {
        self.0.iter().position(|column| column.is_row_id)
    }

    /// What the id of a row of the tail is called, in SQL.
    pub fn row_id_name(&self) -> String {
        let alias = self.row_id().and_then(|alias| self.0.get(alias));
        quoted(alias.map_or(TAIL_ID, |column| column.name.as_str()))
    }

    /// Where a column of the table lies in a stripe and in the tail: the row's id is the first one there.
    pub fn place(&self, column: usize) -> usize {
        match self.row_id() {
            Some(alias) if alias == column => 0,
            Some(alias) if alias < column => column,
            _ => column + 1,
        }
    }

    /// The column that lies at a place. None for the row's id.
    pub fn at_place(&self, place: usize) -> Option<&ColumnDefinition> {
        let column = (0..self.0.len()).find(|&column| self.place(column) == place)?;
        self.0.get(column).filter(|_| place > 0)
    }

    /// The affinity of what lies at a place.
    pub fn affinity_at(&self, place: usize) -> Affinity {
        self.at_place(place).map_or(Affinity::Numeric, |column| column.affinity)
    }
}

/// The tail's column for the row's id, where the user has not named one. VACUUM gives rows other ids in
/// tables that have no such column.
pub const TAIL_ID: &str = "columnar rowid";

/// Whether a definition has these words one after the other, outside of quotes as far as can be seen.
pub fn has_words(definition: &str, words: &[&str]) -> bool {
    let all: Vec<String> = definition
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_uppercase)
        .collect();
    all.windows(words.len()).any(|found| found.iter().zip(words).all(|(a, b)| a == b))
}

/// A name in SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in SQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::Declaration;

    #[test]
    fn options_are_told_from_definitions() {
        let parts =
            ["id INTEGER", "chunk_rows=65536", "compression = 'LZ4'", "CHECK (a = b)", "\"x=y\" TEXT"];
        let declaration = Declaration::parse(&parts).unwrap();
        assert_eq!(declaration.options.chunk_rows, 65_536);
        assert_eq!(declaration.options.codec, encodings::Codec::Lz4);
        assert_eq!(declaration.options.stripe_rows, 131_072);
        assert_eq!(declaration.definitions, ["id INTEGER", "CHECK (a = b)", "\"x=y\" TEXT"]);
        let sorted = Declaration::parse(&["a", "orderby = 'b desc, \"c d\" ,e'"]).unwrap().options.orderby;
        assert_eq!(sorted, [("b".into(), true), ("c d".into(), false), ("e".into(), false)]);
        assert!(Declaration::parse(&["a", "orderby='a,,b'"]).is_err());
        assert!(Declaration::parse(&["chunk_row=5", "a"]).is_err());
        assert!(Declaration::parse(&["chunk_rows=5", "a"]).is_err());
        assert!(Declaration::parse(&["chunk_rows=2000"]).is_err());
    }
}
