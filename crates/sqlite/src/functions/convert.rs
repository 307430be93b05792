//! `columnar_convert(table, option, ...)` and `columnar_revert(table)`: a plain table becomes a columnar one
//! of the same name, and back.
//!
//! Both make a table of another name, fill it, drop the old one and rename the new one, within a savepoint.
//! What hangs on the old table and would be lost with it is an error before anything is done.

use crate::api::{Argument, Connection, Context, Error, Result, Value};
use crate::declaration::{has_words, literal, quoted, shown_option};
use crate::table::{Tables, resolve};

/// A table that is going to be replaced.
struct Old {
    schema: String,
    name: String,
    /// Definitions of its columns.
    definitions: Vec<String>,
    /// The names of its columns.
    columns: Vec<String>,
}

/// A plain table becomes a columnar one. Returns how many rows it has. Further arguments are options.
pub fn to_columnar(_tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let db = context.connection();
    let [table, options @ ..] = arguments else { return Err(Error::new("wrong number of arguments")) };
    let old = Old::find(db, *table)?;
    let mut parts = old.definitions.clone();
    for option in options {
        let text = String::from_utf8_lossy(option.text());
        parts.push(
            shown_option(&text)
                .ok_or_else(|| Error::new(format!("'{text}' is not an option: name=value is expected")))?,
        );
    }
    let made = format!("CREATE VIRTUAL TABLE {} USING columnar({})", old.new_place(), parts.join(", "));
    context.set(Value::Integer(old.replace(db, &made)?));
    Ok(())
}

/// A columnar table becomes a plain one. Returns how many rows it has.
pub fn to_plain(tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let db = context.connection();
    let [table] = arguments else { return Err(Error::new("wrong number of arguments")) };
    let known = tables.find(db, *table)?;
    let shadow = &known.storage.shadow;
    let columns = known.storage.columns.0.iter().map(|column| column.name.clone()).collect();
    let (schema, name) = (shadow.schema().to_owned(), shadow.name());
    let old = Old { schema, name, definitions: known.definitions.clone(), columns };
    drop(known);
    old.expect_no_reference(db)?;
    let made = format!("CREATE TABLE {}({})", old.new_place(), old.definitions.join(", "));
    context.set(Value::Integer(old.replace(db, &made)?));
    Ok(())
}

/// The statement that made a table.
fn sql_of(db: Connection, schema: &str, name: &str) -> Result<Option<String>> {
    let sql = format!("SELECT sql FROM {}.sqlite_master WHERE name = ?1 COLLATE NOCASE", quoted(schema));
    let statement = db.prepare(&sql)?;
    statement.bind(1, Value::Text(name.as_bytes()))?;
    Ok(statement.step()?.then(|| statement.text(0)))
}

impl Old {
    fn find(db: Connection, reference: Argument<'_>) -> Result<Self> {
        let text = String::from_utf8_lossy(reference.text()).into_owned();
        let (schema, name) = resolve(db, &text)?;
        let mut old = Self { schema, name, definitions: Vec::new(), columns: Vec::new() };
        let sql = sql_of(db, &old.schema, &old.name)?;
        let sql = sql.ok_or_else(|| Error::new(format!("no such table: {text}")))?;
        let is_plain =
            sql.trim_start().get(..12).is_some_and(|start| start.eq_ignore_ascii_case("CREATE TABLE"));
        if !is_plain {
            return Err(Error::new(format!("{text} is not a plain table")));
        }
        old.expect_simple(db, &sql)?;
        old.expect_no_reference(db)?;
        old.read_columns(db)?;
        Ok(old)
    }

    /// An error if a foreign key of some table names this one: dropping it would delete rows there.
    fn expect_no_reference(&self, db: Connection) -> Result<()> {
        let schema = quoted(&self.schema);
        let tables = db.prepare(&format!("SELECT name FROM {schema}.sqlite_master WHERE type = 'table'"))?;
        while tables.step()? {
            let table = tables.text(0);
            let keys = db.prepare(&format!("PRAGMA {schema}.foreign_key_list({})", quoted(&table)))?;
            while keys.step()? {
                if keys.text(2).eq_ignore_ascii_case(&self.name) && !table.eq_ignore_ascii_case(&self.name) {
                    return Err(Error::new(format!(
                        "{} cannot be converted: {table} references it",
                        self.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// An error if something would be lost.
    fn expect_simple(&self, db: Connection, sql: &str) -> Result<()> {
        let refuse = |what: &str| {
            Err(Error::new(format!(
                "{} cannot become columnar: it has {what}, which would be lost",
                self.name
            )))
        };
        let (schema, name) = (quoted(&self.schema), literal(&self.name));
        let others = format!(
            "SELECT type || ' ' || name FROM {schema}.sqlite_master WHERE tbl_name = {name} COLLATE NOCASE AND type <> 'table'"
        );
        let others = db.prepare(&others)?;
        if others.step()? {
            return refuse(&others.text(0));
        }
        let words: [&[&str]; 6] = [
            &["WITHOUT", "ROWID"],
            &["STRICT"],
            &["AUTOINCREMENT"],
            &["CHECK"],
            &["REFERENCES"],
            &["ON", "CONFLICT"],
        ];
        match words.iter().find(|words| has_words(sql, words)) {
            Some(words) => refuse(&words.join(" ")),
            None => Ok(()),
        }
    }

    fn read_columns(&mut self, db: Connection) -> Result<()> {
        let info =
            db.prepare(&format!("PRAGMA {}.table_xinfo({})", quoted(&self.schema), quoted(&self.name)))?;
        while info.step()? {
            let (name, declared) = (info.text(1), info.text(2));
            let has_default = !matches!(info.value(4), Value::Null);
            if has_default || info.integer(6) != 0 {
                let what = if has_default { "a DEFAULT" } else { "a generated column" };
                let table = &self.name;
                return Err(Error::new(format!("{table} cannot become columnar: it has {what}, {name}")));
            }
            let collation = db.collation(&self.schema, &self.name, &name).unwrap_or_else(|_| "BINARY".into());
            let key = if info.integer(5) != 0 { " PRIMARY KEY" } else { "" };
            let not_null = if info.integer(3) != 0 { " NOT NULL" } else { "" };
            self.definitions.push(format!(
                "{} {declared}{not_null}{key} COLLATE {}",
                quoted(&name),
                quoted(&collation)
            ));
            self.columns.push(name);
        }
        match self.columns.is_empty() {
            true => Err(Error::new(format!("no such table: {}", self.name))),
            false => Ok(()),
        }
    }

    /// The name of the table that takes the old one's place.
    fn new_name(&self) -> String {
        format!("{}_being_converted", self.name)
    }

    fn new_place(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.new_name()))
    }

    /// Makes the new table by this statement and puts it in the old one's place. How many rows it has.
    fn replace(&self, db: Connection, made: &str) -> Result<i64> {
        // Each of its statements writes: where one is interrupted SQLite rolls back.
        db.whole(|_| self.replace_within(db, made))
    }

    fn place(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }

    fn replace_within(&self, db: Connection, made: &str) -> Result<i64> {
        let (old, new) = (self.place(), self.new_place());
        db.execute(made)?;
        let taken = |name: &str| self.columns.iter().any(|column| column.eq_ignore_ascii_case(name));
        let id = ["rowid", "_rowid_", "oid"].into_iter().find(|name| !taken(name));
        let columns: Vec<String> = self.columns.iter().map(|column| quoted(column)).collect();
        let columns = columns.join(", ");
        let (to, from) = match id {
            Some(id) => (format!("{id}, {columns}"), format!("{id}, {columns}")),
            None => (columns.clone(), columns),
        };
        db.execute(&format!("INSERT INTO {new}({to}) SELECT {from} FROM {old}"))?;
        let rows = db.query_integer(&format!("SELECT count(*) FROM {new}"))?.unwrap_or(0);
        db.execute(&format!("DROP TABLE {old}"))?;
        db.execute(&format!("ALTER TABLE {new} RENAME TO {}", quoted(&self.name)))?;
        Ok(rows)
    }
}
