//! Which COPY statements are about Parquet files, and what their options say.

use std::ffi::CStr;

use files::FilePath;
use files::parquet::Codec;
use pgrx::pg_sys::{self, CopyStmt, DefElem};

use crate::host::encoding;
use crate::host::error::{self, PgSqlErrorCode as Code};
use crate::host::tree::{List, Node, Typed};
use crate::options::report::or_raise;
use crate::options::server_files::{self, Access};
use crate::storage::parquet_file;

/// Rows of a row group, as DuckDB and pg_parquet write them.
const GROUP_ROWS: i64 = 122_880;
/// Bytes of values at which a row group ends, however few rows it has.
const GROUP_BYTES: i64 = 256 << 20;
/// Options of COPY that the server's own part carries out.
const OF_SERVER: [&str; 4] = ["freeze", "on_error", "log_verbosity", "reject_limit"];

/// A COPY statement about a Parquet file.
pub struct ParquetCopy {
    pub is_from: bool,
    pub path: FilePath,
    pub codec: Codec,
    pub level: Option<i32>,
    /// Rows and bytes of a row group, at most.
    pub group_rows: usize,
    pub group_bytes: usize,
    /// Which columns get bloom filters.
    pub filtered: Filtered,
    /// Columns of the file are found by their names.
    pub by_name: bool,
    /// Options for the server's own part.
    pub rest: Vec<*mut DefElem>,
}

/// Columns that get bloom filters.
pub enum Filtered {
    /// All of them.
    All,
    /// Those of these names.
    Named(Vec<String>),
}

impl ParquetCopy {
    /// The statement, if it names the format `parquet`, or no format and a file of that ending.
    ///
    /// # Safety
    /// A COPY statement.
    pub unsafe fn of(copy: *const CopyStmt) -> Option<Self> {
        // SAFETY: the caller's promise; names are terminated strings.
        unsafe {
            let options = List::<Typed<'_, DefElem>>::new((*copy).options);
            let format = options.iter().find(|option| option.name() == Some(c"format"));
            let is_ending = || {
                let name = (*copy).filename;
                !name.is_null() && CStr::from_ptr(name).to_bytes().ends_with(b".parquet")
            };
            let is_ours = match format {
                Some(format) => CStr::from_ptr(pg_sys::defGetString(format.as_ptr()))
                    .to_bytes()
                    .eq_ignore_ascii_case(b"parquet"),
                None => is_ending() && !(*copy).is_program,
            };
            is_ours.then(|| Self::read(copy, options))
        }
    }

    unsafe fn read(copy: *const CopyStmt, options: List<'_, Typed<'_, DefElem>>) -> Self {
        // SAFETY: as `of`.
        unsafe {
            if (*copy).filename.is_null() || (*copy).is_program {
                error::not_supported(
                    "COPY of Parquet needs a file on the server",
                    "Its readers go back and forth in the file.",
                    "Name a file, as in COPY t TO '/tmp/t.parquet' (FORMAT parquet).",
                );
            }
            let mut read = Self {
                is_from: (*copy).is_from,
                path: file((*copy).is_from, CStr::from_ptr((*copy).filename)),
                codec: Codec::Snappy,
                level: None,
                group_rows: GROUP_ROWS as usize,
                group_bytes: GROUP_BYTES as usize,
                filtered: Filtered::Named(Vec::new()),
                by_name: false,
                rest: Vec::new(),
            };
            for option in options.iter() {
                read.take(option);
            }
            if let Some(level) = read.level
                && read.codec.levels().is_none_or(|levels| !levels.contains(&level))
            {
                let valid = match read.codec.levels() {
                    Some(levels) => format!("levels from {} to {}.", levels.start(), levels.end()),
                    None => "this compression has no levels.".into(),
                };
                refuse("compression_level", &level.to_string(), &valid);
            }
            read
        }
    }

    unsafe fn take(&mut self, option: Typed<'_, DefElem>) {
        // SAFETY: as `of`.
        unsafe {
            let Some(name) = option.name().and_then(|name| name.to_str().ok()) else { return };
            let text =
                || CStr::from_ptr(pg_sys::defGetString(option.as_ptr())).to_string_lossy().into_owned();
            let number = |least: i64| {
                let number = pg_sys::defGetInt64(option.as_ptr());
                if number < least {
                    refuse(name, &number.to_string(), &format!("at least {least}."));
                }
                usize::try_from(number).unwrap_or(usize::MAX)
            };
            match name {
                "format" => {}
                "compression" if !self.is_from => self.codec = codec(&text()),
                "compression_level" if !self.is_from => {
                    self.level = i32::try_from(pg_sys::defGetInt64(option.as_ptr())).ok();
                }
                "row_group_size" if !self.is_from => self.group_rows = number(1),
                "bloom_filter_columns" if !self.is_from => self.filtered = filtered(option),
                "row_group_size_bytes" if !self.is_from => self.group_bytes = number(1024),
                "match_by" if self.is_from => match text().as_str() {
                    "position" => self.by_name = false,
                    "name" => self.by_name = true,
                    other => refuse(name, other, "position, name."),
                },
                _ if self.is_from && OF_SERVER.contains(&name) => self.rest.push(option.as_ptr()),
                _ => error::raise(
                    Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                    format!("COPY {} Parquet does not have the option \"{name}\"", self.verb()),
                    "",
                    match self.is_from {
                        true => {
                            "It has the options match_by, freeze, on_error, log_verbosity and reject_limit."
                        }
                        false => {
                            "It has the options compression, compression_level, row_group_size, row_group_size_bytes and bloom_filter_columns."
                        }
                    },
                ),
            }
        }
    }

    const fn verb(&self) -> &'static str {
        if self.is_from { "FROM" } else { "TO" }
    }

    /// Raises an ERROR about the file.
    pub fn fail(&self, problem: &files::Error) -> ! {
        parquet_file::fail(&self.path, problem)
    }
}

/// A file that the user names to be read, or to be written.
///
/// # Errors
/// An ERROR unless the user may have the server do so.
pub fn file(reads: bool, name: &CStr) -> FilePath {
    let (access, denied) = match reads {
        true => (Access::Read, "permission denied to read a Parquet file"),
        false => (Access::Write, "permission denied to write a Parquet file"),
    };
    let path = or_raise(server_files::named(server_files::current_role(), access, name, denied));
    if !reads && !path.as_path().is_absolute() {
        error::raise(
            Code::ERRCODE_INVALID_NAME,
            "relative path not allowed for COPY to file",
            "",
            "Begin the name of the file with a slash.",
        );
    }
    path
}

/// A list of names, one name, or a star for all.
unsafe fn filtered(option: Typed<'_, DefElem>) -> Filtered {
    let value = option.value();
    if value.is_some_and(|value| value.tag() == pg_sys::NodeTag::T_A_Star) {
        return Filtered::All;
    }
    let Some(list) = value.and_then(Node::as_list) else {
        // SAFETY: an option of a statement; an ERROR where it has no value.
        let name = unsafe { CStr::from_ptr(pg_sys::defGetString(option.as_ptr())) };
        return Filtered::Named(vec![encoding::to_utf8(name).into_owned()]);
    };
    let name = |node: Node<'_>| Some(encoding::to_utf8(node.as_a::<pg_sys::String>()?.text()?).into_owned());
    Filtered::Named(list.iter().filter_map(name).collect())
}

fn codec(name: &str) -> Codec {
    let asked = match name.to_ascii_lowercase().as_str() {
        "uncompressed" => "none".to_owned(),
        "lz4raw" | "lz4_raw" => "lz4".to_owned(),
        other => other.to_owned(),
    };
    let found = Codec::ALL.iter().find(|(own, _)| *own == asked);
    match found {
        Some((_, codec)) => *codec,
        None => refuse("compression", name, "uncompressed, snappy, gzip, brotli, lz4, zstd."),
    }
}

fn refuse(option: &str, value: &str, valid: &str) -> ! {
    error::raise(
        Code::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid value for option \"{option}\": \"{value}\""),
        "",
        &format!("Valid: {valid}"),
    )
}
