//! COPY TO: a query's rows are gathered by column. When there are enough for a row group, a thread writes
//! them while more rows come (`writer`).
//!
//! A table is copied by the query that reads it, so the executor checks rights and row security. The file
//! gets its name when it is whole. An ERROR takes away what was written.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use files::FilePath;
use files::column::MAGIC;
use files::parquet::Written;
use pgrx::pg_guard;
use pgrx::pg_sys::{self, CopyStmt, DestReceiver, TupleDesc, TupleTableSlot};

use super::shred::{self, Column};
use super::statement::{Filtered, ParquetCopy};
use super::writer::Writer;
use crate::compat;
use crate::host::error::{self, PgSqlErrorCode as Code};
use crate::host::memory;
use crate::host::relation::with_table;
use crate::host::utility_hook::Call;

/// A file under another name until it is whole.
struct Unfinished {
    path: FilePath,
    named: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.named {
            let _ = self.path.remove();
        }
    }
}

/// What gathers and writes rows.
struct Writing<'a> {
    copy: &'a ParquetCopy,
    file: Option<File>,
    fields: Vec<(String, Written)>,
    columns: Vec<Column>,
    /// Memory for what is made of a row on the way. None: nothing is.
    context: Option<pg_sys::MemoryContext>,
    writer: Option<Writer>,
    rows_waiting: usize,
    rows: u64,
}

/// The server's receiver, with ours behind it.
#[repr(C)]
struct Receiver<'a> {
    receiver: DestReceiver,
    writing: *mut Writing<'a>,
}

/// Runs the statement. Returns how many rows were written.
///
/// # Safety
/// A COPY statement as the server hands it to a hook.
pub unsafe fn run(call: Call, copy: &ParquetCopy) -> u64 {
    // SAFETY: the caller's promise; calls into the server are guarded, so that an ERROR drops what is open.
    unsafe {
        let name = copy
            .path
            .as_path()
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let path = copy.path.with_file_name(&format!(".{name}.{}.tmp", std::process::id()));
        refuse_owned(&copy.path);
        let mut unfinished = Unfinished { path, named: false };
        let file = create(&unfinished.path).unwrap_or_else(|problem| copy.fail(&problem.into()));
        let mut writing = Writing {
            copy,
            file: Some(file),
            fields: Vec::new(),
            columns: Vec::new(),
            context: None,
            writer: None,
            rows_waiting: 0,
            rows: 0,
        };
        let mut receiver = Receiver {
            receiver: DestReceiver {
                receiveSlot: Some(receive),
                rStartup: Some(startup),
                rShutdown: Some(nothing),
                rDestroy: Some(nothing),
                mydest: pg_sys::CommandDest::DestNone,
            },
            writing: &raw mut writing,
        };
        execute(call, &raw mut receiver.receiver);
        let finished = writing.finish();
        // A table may have been loaded meanwhile.
        refuse_owned(&copy.path);
        let problem = finished.and_then(|()| Ok(unfinished.path.rename_to(&copy.path)?));
        if let Err(problem) = problem {
            copy.fail(&problem);
        }
        unfinished.named = true;
        writing.rows
    }
}

/// Raises an ERROR where a column file would be replaced by a user who may name files of one directory only,
/// which others share: a foreign table may load it.
fn refuse_owned(path: &FilePath) {
    let is_column_file = || {
        let mut start = [0; MAGIC.len()];
        path.open(false).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == MAGIC
    };
    if path.is_bounded() && is_column_file() {
        error::raise(
            Code::ERRCODE_DUPLICATE_FILE,
            format!("file \"{}\" exists already", path.display()),
            "It is a column file, which a foreign table may load.",
            "Name another file.",
        );
    }
}

/// Makes a file that others may read, as COPY does.
fn create(path: &FilePath) -> std::io::Result<File> {
    let _ = path.remove();
    let file = path.create_new(0o600)?;
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    Ok(file)
}

/// Plans and runs the query whose rows are copied.
unsafe fn execute(call: Call, receiver: *mut DestReceiver) {
    let Call { statement, text, environment, .. } = call;
    // SAFETY: the caller's promise; nodes as the parser makes them.
    unsafe {
        let copy = (*statement).utilityStmt.cast::<CopyStmt>();
        let raw = match (*copy).query.is_null() {
            true => {
                let query = pg_sys::pstrdup(query_of(copy).as_ptr());
                pg_sys::list_nth(pg_sys::pg_parse_query(query), 0).cast::<pg_sys::RawStmt>()
            }
            false => {
                let raw = pg_sys::palloc0(size_of::<pg_sys::RawStmt>()).cast::<pg_sys::RawStmt>();
                (*raw).type_ = pg_sys::NodeTag::T_RawStmt;
                (*raw).stmt = pg_sys::copyObjectImpl((*copy).query.cast()).cast();
                (*raw).stmt_location = (*statement).stmt_location;
                (*raw).stmt_len = (*statement).stmt_len;
                raw
            }
        };
        let queries = pg_sys::pg_analyze_and_rewrite_fixedparams(raw, text, std::ptr::null(), 0, environment);
        if queries.is_null() || (*queries).length != 1 {
            error::not_supported(
                "COPY of Parquet needs one query",
                "A rule makes none or several of it.",
                "",
            );
        }
        let query = pg_sys::list_nth(queries, 0).cast::<pg_sys::Query>();
        if (*query).commandType == pg_sys::CmdType::CMD_UTILITY
            || ((*query).commandType != pg_sys::CmdType::CMD_SELECT && (*query).returningList.is_null())
        {
            error::not_supported("COPY query must have a RETURNING clause", "", "");
        }
        let options = pg_sys::CURSOR_OPT_PARALLEL_OK as c_int;
        let plan = pg_sys::pg_plan_query(query, text, options, std::ptr::null_mut());
        pg_sys::PushCopiedSnapshot(pg_sys::GetActiveSnapshot());
        pg_sys::UpdateActiveSnapshotCommandId();
        let (snapshot, none) = (pg_sys::GetActiveSnapshot(), std::ptr::null_mut());
        let desc = pg_sys::CreateQueryDesc(
            plan,
            text,
            snapshot,
            none,
            receiver,
            std::ptr::null_mut(),
            environment,
            0,
        );
        pg_sys::ExecutorStart(desc, 0);
        compat::run_query(desc);
        pg_sys::ExecutorFinish(desc);
        pg_sys::ExecutorEnd(desc);
        pg_sys::FreeQueryDesc(desc);
        pg_sys::PopActiveSnapshot();
    }
}

/// The query that reads a table: the columns that are named, or all that are not computed.
unsafe fn query_of(copy: *const CopyStmt) -> CString {
    // SAFETY: a COPY of a table; the server copies names.
    unsafe {
        let lock = pg_sys::AccessShareLock;
        let table =
            pg_sys::RangeVarGetRelidExtended((*copy).relation, lock as i32, 0, None, std::ptr::null_mut());
        with_table(table, pg_sys::NoLock, |rel| {
            // Bytes in the database's encoding.
            let quoted =
                |name: *const c_char| CStr::from_ptr(pg_sys::quote_identifier(name)).to_bytes().to_vec();
            let named = pgrx::PgList::<pg_sys::String>::from_pg((*copy).attlist);
            let columns: Vec<_> = match named.is_empty() {
                false => named.iter_ptr().map(|name| quoted((*name).sval)).collect(),
                true => rel
                    .columns()
                    .iter()
                    .filter(|column| !column.attisdropped && column.attgenerated == 0)
                    .map(|column| quoted(column.attname.data.as_ptr()))
                    .collect(),
            };
            let is_partitioned = rel.kind() == pg_sys::RELKIND_PARTITIONED_TABLE;
            let from: &[u8] = if is_partitioned { b" FROM " } else { b" FROM ONLY " };
            let schema = quoted(pg_sys::get_namespace_name((*rel.form()).relnamespace));
            let name = quoted((*rel.form()).relname.data.as_ptr());
            let columns = columns.join(&b", "[..]);
            CString::new([b"SELECT ", &columns[..], from, &schema, b".", &name].concat()).unwrap_or_default()
        })
    }
}

unsafe fn writing_of<'a>(receiver: *mut DestReceiver) -> &'a mut Writing<'a> {
    // SAFETY: the receiver is ours, and the executor calls it on one thread.
    unsafe { &mut *(*receiver.cast::<Receiver<'a>>()).writing }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup(receiver: *mut DestReceiver, _operation: c_int, rows: TupleDesc) {
    // SAFETY: the executor's own row type.
    unsafe { writing_of(receiver).begin(rows) }
}

#[pg_guard]
unsafe extern "C-unwind" fn receive(slot: *mut TupleTableSlot, receiver: *mut DestReceiver) -> bool {
    // SAFETY: a row of the type that the receiver was started with.
    unsafe { writing_of(receiver).push(slot) };
    true
}

#[pg_guard]
unsafe extern "C-unwind" fn nothing(_receiver: *mut DestReceiver) {}

impl Writing<'_> {
    unsafe fn begin(&mut self, rows: TupleDesc) {
        // SAFETY: the executor's own row type.
        let found = unsafe { compat::attributes(rows) };
        for attribute in found.iter().filter(|attribute| !attribute.attisdropped) {
            // SAFETY: as above.
            let (field, column) = unsafe { shred::column(attribute) };
            if self.fields.iter().any(|(known, _)| *known == field.0) {
                error::raise(
                    Code::ERRCODE_DUPLICATE_COLUMN,
                    format!("column \"{}\" comes twice", field.0),
                    "Columns of a Parquet file are known by their names.",
                    "Give one of them another name: SELECT a AS b.",
                );
            }
            self.fields.push(field);
            self.columns.push(column);
        }
        if self.fields.is_empty() {
            error::not_supported("a Parquet file needs a column", "", "");
        }
        if self.columns.iter().any(Column::allocates) {
            self.context = Some(memory::reset_often(c"colonnade COPY TO"));
        }
        let filtered = self.filtered();
        let Some(file) = self.file.take() else { return };
        let writer = Writer::start(file, &self.fields, self.copy, filtered);
        self.writer = Some(writer.unwrap_or_else(|problem| self.copy.fail(&problem)));
    }

    /// Which columns get bloom filters.
    fn filtered(&self) -> Vec<bool> {
        let Filtered::Named(names) = &self.copy.filtered else { return vec![true; self.fields.len()] };
        if let Some(name) = names.iter().find(|name| !self.fields.iter().any(|(field, _)| field == *name)) {
            error::raise(
                Code::ERRCODE_UNDEFINED_COLUMN,
                format!("column \"{name}\" of option \"bloom_filter_columns\" is not copied"),
                "",
                "",
            );
        }
        self.fields.iter().map(|(field, _)| names.contains(field)).collect()
    }

    unsafe fn push(&mut self, slot: *mut TupleTableSlot) {
        // SAFETY: a row of the query's type.
        unsafe {
            pg_sys::slot_getallattrs(slot);
            let before = self.context.map(|context| pg_sys::MemoryContextSwitchTo(context));
            for (at, column) in self.columns.iter_mut().enumerate() {
                let is_null = *(*slot).tts_isnull.add(at);
                column.push((!is_null).then(|| *(*slot).tts_values.add(at)));
            }
            if let (Some(context), Some(before)) = (self.context, before) {
                pg_sys::MemoryContextSwitchTo(before);
                pg_sys::MemoryContextReset(context);
            }
        }
        self.rows_waiting += 1;
        // Adding up for each row would cost more than the row.
        let is_full = self.rows_waiting >= self.copy.group_rows
            || (self.rows_waiting.is_multiple_of(256)
                && self.columns.iter().map(Column::bytes).sum::<usize>() >= self.copy.group_bytes);
        if is_full && let Err(problem) = self.write() {
            self.copy.fail(&problem);
        }
    }

    /// Writes what waits as a row group.
    fn write(&mut self) -> files::Result<()> {
        if self.rows_waiting == 0 {
            return Ok(());
        }
        let values = self.columns.iter_mut().flat_map(Column::take).collect();
        if let Some(writer) = &mut self.writer {
            writer.write(values)?;
        }
        self.rows += std::mem::take(&mut self.rows_waiting) as u64;
        Ok(())
    }

    /// Ends the file, and waits until it is on the device.
    fn finish(&mut self) -> files::Result<()> {
        self.write()?;
        match self.writer.take() {
            Some(writer) => writer.finish(),
            None => Ok(()),
        }
    }
}
