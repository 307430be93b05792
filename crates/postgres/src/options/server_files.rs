//! Which files of the server a role may name: all of them with the privileges of the server's own roles for
//! that, else those below the directory that `colonnade.files_directory` says.
//!
//! Called by whatever takes the name of a file: options of foreign tables, and their uses; IMPORT FOREIGN
//! SCHEMA; COPY of Parquet. What comes back is bounded (`FilePath`): a name below the directory does not lead
//! out of it, whenever it is used.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use files::FilePath;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Oid};

use super::report::Refusal;
use super::settings::FILES_DIRECTORY;

/// What a file is named for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// Both.
    ReadAndWrite,
}

impl Access {
    /// The server's roles whose privileges it takes.
    const fn roles(self) -> &'static [(u32, &'static str)] {
        const READ: (u32, &str) = (pg_sys::ROLE_PG_READ_SERVER_FILES, "pg_read_server_files");
        const WRITE: (u32, &str) = (pg_sys::ROLE_PG_WRITE_SERVER_FILES, "pg_write_server_files");
        match self {
            Self::Read => &[READ],
            Self::Write => &[WRITE],
            Self::ReadAndWrite => &[READ, WRITE],
        }
    }

    fn detail(self) -> String {
        let names: Vec<_> = self.roles().iter().map(|(_, name)| *name).collect();
        let plural = if names.len() > 1 { "s" } else { "" };
        format!("It takes the privileges of the role{plural} {}", names.join(" and "))
    }
}

/// The role that runs the statement.
pub fn current_role() -> Oid {
    // SAFETY: a plain global.
    unsafe { pg_sys::GetUserId() }
}

/// The directory whose files every role may name.
fn directory() -> Option<PathBuf> {
    let name = FILES_DIRECTORY.get().filter(|name| !name.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// A file that a role names. `denied` is the message of the refusal.
///
/// # Errors
/// Where it may not.
pub fn named(role: Oid, access: Access, name: &CStr, denied: &str) -> Result<FilePath, Refusal> {
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    let has = |&(of, _): &(u32, &str)| {
        // SAFETY: catalog look-ups.
        unsafe { pg_sys::has_privs_of_role(role, Oid::from(of)) }
    };
    if access.roles().iter().all(has) {
        return Ok(path.into());
    }
    let root = directory();
    if let Some(path) = root.as_deref().and_then(|root| FilePath::below(root, path)) {
        return Ok(path);
    }
    let detail = match root {
        Some(root)
            if path.components().any(|part| part == Component::ParentDir) && path.starts_with(&root) =>
        {
            format!("{} to name a file with \"..\".", access.detail())
        }
        Some(root) => format!(
            "{}, or a file below \"{}\", which the setting colonnade.files_directory names.",
            access.detail(),
            root.display()
        ),
        None => format!("{}.", access.detail()),
    };
    Err(Refusal::new(Code::ERRCODE_INSUFFICIENT_PRIVILEGE, denied).detail(detail))
}
