//! Files for rows that do not fit memory, in the server's own directory for temporary files.
//!
//! Made by the node for each execution, used by operators on any thread. Files carry the server's prefix, so
//! that a restart after a crash removes them. A file that is dropped is emptied and used again. Operators
//! with little memory make thousands of short-lived files, and a file system takes long to make each. All
//! files are removed with the execution. `temp_file_limit` bounds all files of the execution together. After
//! each batch the main thread reports the files that are gone to the statistics (and to the log, by
//! `log_temp_files`). It reports blocks to the buffer usage that EXPLAIN and `pg_stat_statements` show.
//! Invariant: no thread but the main one calls the server.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use pgrx::PgLogLevel;
use pgrx::pg_sys;
use query::{Result, TempFile, TempFiles};

mod c {
    unsafe extern "C" {
        pub static pg_dir_create_mode: std::ffi::c_int;
        pub static pg_file_create_mode: std::ffi::c_int;
    }
}

/// Longest path of the server.
const MAX_PATH: usize = 1024;

/// Numbers the files of this process. The server's own names have nothing between process and number.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What the files of an execution share.
#[derive(Debug)]
struct Usage {
    /// Bytes of files that exist.
    bytes: AtomicU64,
    /// Most that there may be.
    limit: Option<u64>,
    /// Bytes that were written, and read, since blocks of them were reported.
    written: AtomicU64,
    read: AtomicU64,
    /// Files that are gone: name and size.
    gone: Mutex<Vec<(PathBuf, u64)>>,
    /// Empty files to be used again.
    free: Mutex<Vec<(File, PathBuf)>>,
}

impl Drop for Usage {
    fn drop(&mut self) {
        for (_, path) in self.free.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            remove(&path);
        }
    }
}

/// The files of this process that exist. A backend that is terminated exits in the middle of its work. It
/// unwinds neither its own frames nor those of its threads.
static EXISTING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
/// The process is about to end: no thread makes another file.
static ENDING: AtomicBool = AtomicBool::new(false);

fn remove(path: &Path) {
    // A file that cannot be removed now is removed by the next restart.
    let _ = std::fs::remove_file(path);
    EXISTING.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
}

/// Called by the server when this process ends.
unsafe extern "C-unwind" fn remove_all(_status: std::ffi::c_int, _argument: pg_sys::Datum) {
    let mut existing = EXISTING.lock().unwrap_or_else(PoisonError::into_inner);
    ENDING.store(true, Ordering::Relaxed);
    for path in std::mem::take(&mut *existing) {
        let _ = std::fs::remove_file(path);
    }
}

/// Makes the files of one execution.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    process: i32,
    directory_mode: u32,
    file_mode: u32,
    usage: Arc<Usage>,
}

impl Directory {
    /// The directory that the server would choose next.
    ///
    /// # Safety
    /// On the main thread, in a transaction.
    pub unsafe fn open() -> Arc<Self> {
        // SAFETY: the server writes a NUL-terminated path of at most MAX_PATH bytes; the rest are its own
        // variables.
        unsafe {
            static AT_EXIT: Once = Once::new();
            AT_EXIT.call_once(|| pg_sys::on_proc_exit(Some(remove_all), pg_sys::Datum::null()));
            let mut path = [0 as std::ffi::c_char; MAX_PATH];
            pg_sys::PrepareTempTablespaces();
            pg_sys::TempTablespacePath(path.as_mut_ptr(), pg_sys::GetNextTempTableSpace());
            let path = std::ffi::CStr::from_ptr(path.as_ptr()).to_string_lossy().into_owned();
            let limit = u64::try_from(pg_sys::temp_file_limit).ok().map(|kilobytes| kilobytes * 1024);
            Arc::new(Self {
                path: path.into(),
                process: pg_sys::MyProcPid,
                directory_mode: c::pg_dir_create_mode.unsigned_abs(),
                file_mode: c::pg_file_create_mode.unsigned_abs(),
                usage: Arc::new(Usage {
                    bytes: AtomicU64::new(0),
                    limit,
                    written: AtomicU64::default(),
                    read: AtomicU64::default(),
                    gone: Mutex::default(),
                    free: Mutex::default(),
                }),
            })
        }
    }

    fn new_file(&self) -> io::Result<SpillFile> {
        let free = self.usage.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some((file, path)) = free {
            return Ok(SpillFile { file: Some(file), path, length: 0, usage: Arc::clone(&self.usage) });
        }
        let name = format!("pgsql_tmp{}.colonnade.{}", self.process, NEXT.fetch_add(1, Ordering::Relaxed));
        let path = self.path.join(name);
        // Held while the file is made: either it is in the list when the process ends, or it is not made.
        let mut existing = EXISTING.lock().unwrap_or_else(PoisonError::into_inner);
        if ENDING.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let open = |path: &Path| {
            OpenOptions::new().read(true).write(true).create_new(true).mode(self.file_mode).open(path)
        };
        let file = open(&path).or_else(|_| {
            // The server makes the directory when it is first needed, too.
            match DirBuilder::new().mode(self.directory_mode).create(&self.path) {
                Err(problem) if problem.kind() != io::ErrorKind::AlreadyExists => Err(problem),
                _ => open(&path),
            }
        })?;
        existing.insert(path.clone());
        Ok(SpillFile { file: Some(file), path, length: 0, usage: Arc::clone(&self.usage) })
    }

    /// Tells the server about the blocks that were written and read since the last report, and about the
    /// files that are gone by now.
    ///
    /// # Safety
    /// On the main thread.
    pub unsafe fn report(&self) {
        // SAFETY: the server's own counters, on its main thread.
        unsafe {
            pg_sys::pgBufferUsage.temp_blks_written += whole_blocks(&self.usage.written);
            pg_sys::pgBufferUsage.temp_blks_read += whole_blocks(&self.usage.read);
        }
        let gone = std::mem::take(&mut *self.usage.gone.lock().unwrap_or_else(PoisonError::into_inner));
        for (path, size) in gone {
            // SAFETY: on the main thread, as the server itself reports files.
            unsafe {
                pg_sys::pgstat_report_tempfile(size as usize);
                let limit = pg_sys::log_temp_files;
                if limit >= 0 && size / 1024 >= u64::from(limit.unsigned_abs()) {
                    let text = format!("temporary file: path \"{}\", size {size}", path.display());
                    pgrx::ereport!(
                        PgLogLevel::LOG,
                        pgrx::PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
                        text
                    );
                }
            }
        }
    }
}

/// Takes whole blocks off the bytes counted.
fn whole_blocks(bytes: &AtomicU64) -> i64 {
    let blocks = bytes.load(Ordering::Relaxed) / u64::from(pg_sys::BLCKSZ);
    bytes.fetch_sub(blocks * u64::from(pg_sys::BLCKSZ), Ordering::Relaxed);
    blocks.cast_signed()
}

impl TempFiles for Directory {
    fn create(&self) -> Result<Box<dyn TempFile>> {
        match self.new_file() {
            Ok(file) => Ok(Box::new(file)),
            Err(problem) => {
                let text =
                    format!("could not create a temporary file in \"{}\": {problem}", self.path.display());
                Err(vector::Error::Host(text).into())
            }
        }
    }
}

/// A file that lives as long as this.
struct SpillFile {
    /// Taken when this is dropped.
    file: Option<File>,
    path: PathBuf,
    length: u64,
    usage: Arc<Usage>,
}

impl TempFile for SpillFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let size = bytes.len() as u64;
        let all = self.usage.bytes.fetch_add(size, Ordering::Relaxed) + size;
        if let Some(limit) = self.usage.limit
            && all > limit
        {
            self.usage.bytes.fetch_sub(size, Ordering::Relaxed);
            let text = format!("temporary file size exceeds temp_file_limit ({}kB)", limit / 1024);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        let at = self.length;
        self.length += size;
        self.file.as_ref().ok_or(io::ErrorKind::NotFound)?.write_all_at(bytes, at)?;
        self.usage.written.fetch_add(size, Ordering::Relaxed);
        Ok(at)
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.as_ref().ok_or(io::ErrorKind::NotFound)?.read_exact_at(out, offset)?;
        self.usage.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.usage.bytes.fetch_sub(self.length, Ordering::Relaxed);
        let path = std::mem::take(&mut self.path);
        match self.file.take() {
            Some(file) if file.set_len(0).is_ok() => {
                self.usage.free.lock().unwrap_or_else(PoisonError::into_inner).push((file, path.clone()));
            }
            _ => remove(&path),
        }
        self.usage.gone.lock().unwrap_or_else(PoisonError::into_inner).push((path, self.length));
    }
}
