//! `columnar_import(table, file, option, ...)`: rows of a file into a table, which is made if it is not
//! there.

use std::cell::OnceCell;

use files::Field;

use super::options::{Format, Transfer, Way};
use super::progress::Progress;
use super::source::Source;
use super::values::declared;
use crate::api::{Argument, Connection, Context, Error, Result, Statement, Value};
use crate::declaration::quoted;
use crate::table::{Tables, find_schema, parts_of};

/// Where rows go.
struct Target {
    schema: String,
    name: String,
    /// The names of its columns. None: it is still to be made.
    columns: Option<Vec<String>>,
}

/// The function. Returns how many rows were imported.
pub fn import(tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let db = context.connection();
    let wants = "columnar_import requires a table and a file";
    let (table, path, options) = Transfer::asked(Way::Import, arguments, wants)?;
    let target = Target::find(db, &table)?;
    if let (Some(option), Some(_)) = (options.of_table.first(), &target.columns) {
        return Err(Error::new(format!("{option} is no option of an import into a table that is there")));
    }
    let mut source = Source::open(&path, &options, target.columns.is_none())?;
    let names = target.names(&source, &options)?;
    let mut progress = Progress::new(db, options.progress.as_deref(), &target.name)?;
    let body = |write: &OnceCell<Statement>| {
        if target.columns.is_none() {
            db.execute(&target.creating(&source, &options))?;
        }
        let nothing = db.prepare(&target.inserting(&names, |_| "NULL".into(), " WHERE 0"))?;
        let _ = write.set(nothing);
        target.fill((db, tables), &names, &mut source, &mut progress)
    };
    let rows = db.keeping_last_id(|| db.whole(body))?;
    context.set(Value::Integer(rows.cast_signed()));
    Ok(())
}

impl Target {
    fn find(db: Connection, text: &str) -> Result<Self> {
        let (schema, name) = match parts_of(text)? {
            (Some(schema), name) => (schema.to_owned(), name.to_owned()),
            (None, name) => (find_schema(db, name)?.unwrap_or_else(|| "main".into()), name.to_owned()),
        };
        let info = db.prepare(&format!("PRAGMA {}.table_xinfo({})", quoted(&schema), quoted(&name)))?;
        let mut columns = Vec::new();
        while info.step()? {
            // Hidden and generated columns are given no values.
            if info.integer(6) == 0 {
                columns.push(info.text(1));
            }
        }
        Ok(Self { schema, name, columns: (!columns.is_empty()).then_some(columns) })
    }

    fn place(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }

    /// The statement that makes the table.
    fn creating(&self, source: &Source, options: &Transfer) -> String {
        let definition = |field: &Field| format!("{} {}", quoted(&field.name), declared(field.kind));
        let fields = source.fields().iter().map(definition);
        let parts: Vec<String> = fields.chain(options.of_table.iter().cloned()).collect();
        format!("CREATE VIRTUAL TABLE {} USING columnar({})", self.place(), parts.join(", "))
    }

    /// The statement that inserts a row, or what `end` leaves of it.
    fn inserting(&self, names: &[String], value: impl Fn(usize) -> String, end: &str) -> String {
        let values: Vec<String> = (1..=names.len()).map(value).collect();
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        format!("INSERT INTO {}({}) SELECT {}{end}", self.place(), names.join(", "), values.join(", "))
    }

    /// The columns that the fields of the file go to.
    fn names(&self, source: &Source, options: &Transfer) -> Result<Vec<String>> {
        let fields = source.fields();
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        for (at, name) in names.iter().enumerate() {
            if names.iter().skip(at + 1).any(|other| other.eq_ignore_ascii_case(name)) {
                return Err(Error::new(format!("the file has two columns {name}")));
            }
        }
        match &self.columns {
            None => Ok(names),
            // Without names columns go by their places.
            Some(own) if options.format == Format::Csv && !options.has_header => {
                match own.len() == fields.len() {
                    true => Ok(own.clone()),
                    false => Err(Error::new(format!(
                        "the file has {} columns and no names, {} has {}",
                        fields.len(),
                        self.name,
                        own.len()
                    ))),
                }
            }
            Some(own) => {
                let is_own = |name: &&String| own.iter().any(|own| own.eq_ignore_ascii_case(name));
                match names.iter().find(|name| !is_own(name)) {
                    None => Ok(names),
                    Some(other) => Err(Error::new(format!(
                        "{} has no column {other}: the option columns=a,b names those that are read",
                        self.name
                    ))),
                }
            }
        }
    }

    /// Inserts all rows.
    fn fill(
        &self,
        (db, tables): (Connection, &Tables),
        names: &[String],
        source: &mut Source,
        progress: &mut Progress,
    ) -> Result<u64> {
        let insert = db.prepare(&self.inserting(names, |at| format!("?{at}"), ""))?;
        // All columns in the table's order: a columnar table may take them as they are.
        let direct = match &self.columns {
            None => true,
            Some(own) => {
                own.len() == names.len()
                    && own.iter().zip(names).all(|(own, name)| own.eq_ignore_ascii_case(name))
            }
        };
        let mut rows = 0;
        while let Some(columns) = source.next()? {
            let count = columns.first().map_or(0, |column| column.vector.len());
            // The first rows tell SQLite that the table is being written. It says whether that is allowed.
            let known = if direct && rows > 0 { tables.known(&self.schema, &self.name) } else { None };
            let is_taken = known.map_or(Ok(false), |table| table.append(&columns))?;
            for row in if is_taken { 0..0 } else { 0..count } {
                for (at, column) in columns.iter().enumerate() {
                    insert.bind(at + 1, column.get(row)?)?;
                }
                while insert.step()? {}
            }
            rows += count as u64;
            progress.at(rows, source.share(rows))?;
        }
        progress.end(rows)?;
        Ok(rows)
    }
}
