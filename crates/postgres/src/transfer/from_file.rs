//! COPY FROM: a thread reads the Parquet file and writes its rows, as text, into a pipe. The server's own
//! COPY reads the pipe. So columns, defaults, conditions, triggers, partitions and constraints are the
//! server's, and values become those of any type, by its input function.
//!
//! The thread owns its end of the pipe and its file, and never calls the server. It ends when the other end
//! is closed: after the statement, or by the callbacks of an abort. What goes wrong in it is raised after
//! COPY has ended, within the same statement, so nothing of it stays.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::thread::JoinHandle;

use files::column::Column;
use files::parquet::{Form, ParquetReader, columns, to_column};
use files::{Field, FieldKind, FilePath, text};
use pgrx::pg_guard;
use pgrx::pg_sys::{self, CopyStmt, PlannedStmt, SubTransactionId, SubXactEvent, XactEvent};
use vector::{LogicalType, Vector};

use super::statement::ParquetCopy;
use crate::host::encoding;
use crate::host::error::{self, PgSqlErrorCode as Code};
use crate::host::relation::with_table;
use crate::host::worker;
use crate::storage::parquet_file;

/// Rows that are read at once.
const ROWS: usize = 4096;
/// Bytes of the pipe. The system may give fewer.
const PIPE: i32 = 1 << 20;

/// A pipe with a thread at its other end.
struct Pipe {
    /// The end that COPY opens by its number.
    end: Option<File>,
    thread: JoinHandle<files::Result<()>>,
    path: FilePath,
    of: SubTransactionId,
}

thread_local! {
    /// Innermost last: a trigger's function may COPY, too.
    static PIPES: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
}

/// Registers the callbacks that close pipes.
///
/// # Safety
/// Once, from `_PG_init`.
pub unsafe fn register() {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_event), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_event), std::ptr::null_mut());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_event(event: XactEvent::Type, _arg: *mut c_void) {
    if event == XactEvent::XACT_EVENT_ABORT {
        PIPES.take();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_event(
    event: SubXactEvent::Type,
    own: SubTransactionId,
    _parent: SubTransactionId,
    _arg: *mut c_void,
) {
    if event == SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        PIPES.with_borrow_mut(|pipes| pipes.retain(|pipe| pipe.of < own));
    }
}

/// Starts the thread. Returns the COPY that reads what it writes.
///
/// # Safety
/// A COPY FROM statement as the server hands it to a hook.
pub unsafe fn begin(statement: *mut PlannedStmt, copy: &ParquetCopy) -> *mut PlannedStmt {
    // SAFETY: the caller's promise; the server's nodes are copied before they are changed.
    unsafe {
        let statement = pg_sys::copyObjectImpl(statement.cast()).cast::<PlannedStmt>();
        let own = (*statement).utilityStmt.cast::<CopyStmt>();
        let targets = targets(own);
        let reader = copy.path.open(false).map_err(files::Error::from).and_then(ParquetReader::read);
        let mut reader = reader.unwrap_or_else(|problem| copy.fail(&problem));
        let fields = chosen(&mut reader, &targets, copy);
        let declared = columns(&fields).unwrap_or_else(|problem| copy.fail(&problem));
        let (end, other) = pipe().unwrap_or_else(|problem| copy.fail(&problem.into()));
        let kinds = fields.iter().map(|field| field.kind).collect();
        let thread = worker::spawn("colonnade parquet", move || write_rows(reader, kinds, declared, other));
        let thread = thread.unwrap_or_else(|problem| copy.fail(&problem.into()));
        let name = CString::new(format!("/dev/fd/{}", end.as_raw_fd())).unwrap_or_default();
        (*own).filename = pg_sys::pstrdup(name.as_ptr());
        let text = |name: &CStr, value: &CStr| {
            let value = pg_sys::makeString(pg_sys::pstrdup(value.as_ptr()));
            pg_sys::makeDefElem(pg_sys::pstrdup(name.as_ptr()), value.cast(), -1)
        };
        let mut options = pg_sys::lappend(std::ptr::null_mut(), text(c"format", c"text").cast());
        options = pg_sys::lappend(options, text(c"encoding", c"UTF8").cast());
        for option in &copy.rest {
            options = pg_sys::lappend(options, pg_sys::copyObjectImpl(option.cast()).cast());
        }
        (*own).options = options;
        let of = pg_sys::GetCurrentSubTransactionId();
        PIPES.with_borrow_mut(|pipes| {
            pipes.push(Pipe { end: Some(end), thread, path: copy.path.clone(), of })
        });
        statement
    }
}

/// Reads what the innermost thread has written. Nothing: it has ended.
///
/// # Errors
/// As the system's.
pub fn read(room: &mut [u8]) -> std::io::Result<usize> {
    PIPES.with_borrow_mut(|pipes| match pipes.last_mut().and_then(|pipe| pipe.end.as_mut()) {
        Some(end) => end.read(room),
        None => Ok(0),
    })
}

/// After COPY has read all: raises what went wrong in the thread.
pub fn end() {
    let Some(mut pipe) = PIPES.with_borrow_mut(Vec::pop) else { return };
    // COPY may have stopped reading.
    pipe.end = None;
    match pipe.thread.join() {
        Ok(Ok(())) => {}
        Ok(Err(problem)) => parquet_file::fail(&pipe.path, &problem),
        Err(_) => error::internal("the thread that reads a Parquet file has failed"),
    }
}

/// The columns that are filled: their names, and the text that lists and structs become for them.
unsafe fn targets(copy: *const CopyStmt) -> Vec<(String, Form)> {
    // SAFETY: a COPY of a table. The server raises an ERROR where there is none.
    unsafe {
        let named = pgrx::PgList::<pg_sys::String>::from_pg((*copy).attlist);
        let lock = pg_sys::RowExclusiveLock as i32;
        let table = pg_sys::RangeVarGetRelidExtended((*copy).relation, lock, 0, None, std::ptr::null_mut());
        with_table(table, pg_sys::NoLock, |rel| {
            let columns = rel.columns().iter().filter(|column| !column.attisdropped);
            let name_of =
                |column: &pg_sys::FormData_pg_attribute| CStr::from_ptr(column.attname.data.as_ptr());
            let target = |name: &CStr, of: Option<&pg_sys::FormData_pg_attribute>| {
                (encoding::to_utf8(name).into_owned(), of.map_or(Form::Json, |column| form(column.atttypid)))
            };
            if named.is_empty() {
                let stored = columns.filter(|column| column.attgenerated == 0);
                return stored.map(|column| target(name_of(column), Some(column))).collect();
            }
            let named = named.iter_ptr().map(|name| CStr::from_ptr((*name).sval));
            // The server says which of them are not there.
            named.map(|name| target(name, columns.clone().find(|column| name_of(column) == name))).collect()
        })
    }
}

/// The text that a type's input function reads.
unsafe fn form(type_oid: pg_sys::Oid) -> Form {
    // SAFETY: catalog look-ups.
    unsafe {
        let base = pg_sys::getBaseType(type_oid);
        match pg_sys::get_element_type(base) != pg_sys::InvalidOid || pg_sys::type_is_rowtype(base) {
            true => Form::Literal,
            false => Form::Json,
        }
    }
}

/// The fields of the file that fill these columns, in their order. By position, they are the columns of the
/// file, with structs as one, or the parts of structs.
fn chosen(reader: &mut ParquetReader, targets: &[(String, Form)], copy: &ParquetCopy) -> Vec<Field> {
    let fields = reader.fields();
    let (outermost, parts) = (reader.outermost(), reader.parts());
    let name = |&at: &usize| fields.get(at).map(|field| field.name.as_str());
    let names = || outermost.iter().filter_map(name).collect::<Vec<_>>().join(", ");
    let positions: Vec<usize> = match copy.by_name {
        true => targets
            .iter()
            .map(|(target, _)| {
                fields.iter().position(|field| field.name == *target).unwrap_or_else(|| {
                    error::raise(
                        Code::ERRCODE_UNDEFINED_COLUMN,
                        format!("Parquet file \"{}\" has no column \"{target}\"", copy.path.display()),
                        &format!("It has the columns {}.", names()),
                        "Name the columns to fill: COPY t (a, b) FROM ...",
                    )
                })
            })
            .collect(),
        false if outermost.len() == targets.len() => outermost,
        false if parts.len() == targets.len() => parts,
        false => error::raise(
            Code::ERRCODE_DATATYPE_MISMATCH,
            format!(
                "Parquet file \"{}\" has {} columns, and {} are to be filled",
                copy.path.display(),
                outermost.len(),
                targets.len()
            ),
            &format!("It has the columns {}.", names()),
            "Name the columns to fill, or use the option match_by 'name'.",
        ),
    };
    let forms = targets.iter().map(|(_, form)| *form);
    reader.choose(positions.iter().copied().zip(forms));
    positions.iter().filter_map(|&at| fields.get(at).cloned()).collect()
}

/// Both ends of a pipe: for reading, for writing.
fn pipe() -> std::io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: plain calls; both numbers are ours alone.
    unsafe {
        if libc::pipe(ends.as_mut_ptr()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let [read, write] = ends;
        for end in ends {
            libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        #[cfg(target_os = "linux")]
        libc::fcntl(write, libc::F_SETPIPE_SZ, PIPE);
        Ok((File::from_raw_fd(read), File::from_raw_fd(write)))
    }
}

/// What the thread does: all rows, as COPY's text format wants them.
fn write_rows(
    mut reader: ParquetReader,
    kinds: Vec<FieldKind>,
    declared: Vec<Column>,
    mut out: File,
) -> files::Result<()> {
    let mut lines = Vec::new();
    while let Some(rows) = reader.next(ROWS)? {
        let rows = rows.into_iter().zip(&kinds).map(|(values, kind)| to_column(values, *kind));
        let rows = rows.collect::<files::Result<Vec<_>>>()?;
        lines.clear();
        append(&rows, &declared, &mut lines)?;
        match out.write_all(&lines) {
            Ok(()) => {}
            // COPY has ended before, with an error of its own.
            Err(problem) if problem.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            Err(problem) => return Err(problem.into()),
        }
    }
    Ok(())
}

/// Appends rows as lines of COPY's text format.
fn append(rows: &[Vector], declared: &[Column], lines: &mut Vec<u8>) -> files::Result<()> {
    let count = rows.first().map_or(0, Vector::len);
    let mut value = String::new();
    for row in 0..count {
        for (at, (column, declared)) in rows.iter().zip(declared).enumerate() {
            if at > 0 {
                lines.push(b'\t');
            }
            if !column.is_valid(row) {
                lines.extend_from_slice(b"\\N");
                continue;
            }
            value.clear();
            text::append(column, row, &declared.declared, &mut value)?;
            if matches!(column.logical, LogicalType::Text | LogicalType::Bytes) {
                escape(value.as_bytes(), lines);
            } else {
                lines.extend_from_slice(value.as_bytes());
            }
        }
        lines.push(b'\n');
    }
    Ok(())
}

/// Appends text with what COPY takes for its own escaped.
fn escape(text: &[u8], lines: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r')) {
        let (before, after) = rest.split_at(at);
        lines.extend_from_slice(before);
        let Some((&special, tail)) = after.split_first() else { return };
        lines.extend_from_slice(match special {
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            _ => b"\\\\",
        });
        rest = tail;
    }
    lines.extend_from_slice(rest);
}
