//! `columnar_convert(table, option, ...)` and `columnar_revert(table)`: a plain table becomes a columnar one
//! of the same name, and back.
//!
//! Both make a table of another name, fill it, drop the old one and rename the new one, within a savepoint.
//! What hangs on the old table and would be lost with it is an error before anything is done.

use crate::api::{Argument, Connection, Context, Error, Result, Value};
use crate::declaration::{literal, quoted};
use crate::table::Tables;

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
    let old = Old::find(db, *table, false)?;
    let options = options.iter().map(|option| String::from_utf8_lossy(option.text()).into_owned());
    let parts: Vec<String> = old.definitions.iter().cloned().chain(options).collect();
    let made = format!("CREATE VIRTUAL TABLE {} USING columnar({})", old.new_place(), parts.join(", "));
    context.set(Value::Integer(old.replace(db, &made)?));
    Ok(())
}

/// A columnar table becomes a plain one. Returns how many rows it has.
pub fn to_plain(tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let db = context.connection();
    let [table] = arguments else { return Err(Error::new("wrong number of arguments")) };
    let known = tables.find(db, *table)?;
    let mut old = Old::find(db, *table, true)?;
    old.schema = known.storage.shadow.schema().into();
    // The tail is declared as the user has declared the table.
    let tail = known.storage.shadow.bare("tail");
    drop(known);
    let sql = sql_of(db, &old.schema, &tail)?.ok_or_else(|| Error::corrupt(format!("{tail} is missing")))?;
    let definitions = sql.find('(').and_then(|start| sql.get(start..)).unwrap_or_default();
    let made = format!("CREATE TABLE {}{definitions}", old.new_place());
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
    fn find(db: Connection, reference: Argument<'_>, is_columnar: bool) -> Result<Self> {
        let text = String::from_utf8_lossy(reference.text()).into_owned();
        let (schema, name) = match text.split_once('.') {
            Some((schema, name)) => (schema.to_owned(), name.to_owned()),
            None => ("main".to_owned(), text.clone()),
        };
        let mut old = Self { schema, name, definitions: Vec::new(), columns: Vec::new() };
        if is_columnar {
            old.read_columns(db)?;
            return Ok(old);
        }
        let sql = sql_of(db, &old.schema, &old.name)?;
        let sql = sql.ok_or_else(|| Error::new(format!("no such table: {text}")))?;
        let is_plain =
            sql.trim_start().get(..12).is_some_and(|start| start.eq_ignore_ascii_case("CREATE TABLE"));
        if !is_plain {
            return Err(Error::new(format!("{text} is not a plain table")));
        }
        old.expect_simple(db, &sql)?;
        old.read_columns(db)?;
        Ok(old)
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
        let upper = sql.to_ascii_uppercase();
        for word in
            ["WITHOUT ROWID", "STRICT", "AUTOINCREMENT", "CHECK", "GENERATED ALWAYS", "DEFAULT", "REFERENCES"]
        {
            if upper.contains(word) {
                return refuse(word);
            }
        }
        Ok(())
    }

    fn read_columns(&mut self, db: Connection) -> Result<()> {
        let info =
            db.prepare(&format!("PRAGMA {}.table_xinfo({})", quoted(&self.schema), quoted(&self.name)))?;
        while info.step()? {
            let (name, declared) = (info.text(1), info.text(2));
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
        db.execute("SAVEPOINT colonnade_convert")?;
        let replaced = self.replace_within(db, made);
        if replaced.is_err() {
            db.execute("ROLLBACK TO colonnade_convert")?;
        }
        db.execute("RELEASE colonnade_convert")?;
        replaced
    }

    fn replace_within(&self, db: Connection, made: &str) -> Result<i64> {
        let old = format!("{}.{}", quoted(&self.schema), quoted(&self.name));
        let new = self.new_place();
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
