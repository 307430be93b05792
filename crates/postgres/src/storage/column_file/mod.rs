//! Stripes of foreign tables, in files beside the database.
//!
//! The directory says which stripes of a file count, and for whom, as it does for a table's own pages. So
//! commit, rollback, savepoints and two-phase commit of loads are the server's. `engine.column_file` has the
//! storage id of each foreign table that was ever loaded. The file's head has the same id.
//!
//! - `named`: which file a table has, and under which storage id
//! - `open`: files that this backend has open
//! - `others`: files that a table names and did not write
//! - `load`: stripes are added to a file
//! - `missing`: what rows have in columns that are younger
//! - `publish`: what a file says of itself for readers without this server, and files that go
//!
//! Invariants: bytes of a file are written once, past all others, by whoever holds the table's load lock.
//! They are on the device before the transaction commits. A stripe begins at a multiple of a page's size, so
//! a row of the directory says where it is as for pages.

pub mod load;
pub mod missing;
pub mod named;
pub mod open;
pub mod others;
pub mod publish;

use files::FilePath;

use crate::host::error::{self, PgSqlErrorCode as Code};
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;

/// What the place of a stripe is counted in.
pub const BLOCK_BYTES: u64 = 8192;

/// The first byte of a stripe in its file.
fn first_byte(entry: &StripeEntry) -> u64 {
    u64::from(entry.run.first_block) * BLOCK_BYTES
}

/// Raises an ERROR about the file of a table.
pub fn fail(rel: Open, path: &FilePath, problem: &files::Error) -> ! {
    raise(format!("cannot use column file \"{}\" of {}", path.display(), rel.quoted_name()), problem)
}

/// Raises an ERROR about a file that no table has yet.
pub fn fail_at(path: &FilePath, problem: &files::Error) -> ! {
    raise(format!("cannot use column file \"{}\"", path.display()), problem)
}

fn raise(message: String, problem: &files::Error) -> ! {
    let detail = format!("{problem}.");
    match problem {
        files::Error::Io(io) if io.kind() == std::io::ErrorKind::NotFound => error::raise(
            Code::ERRCODE_UNDEFINED_FILE,
            message,
            &detail,
            "Replication and dumps do not have such files. Put the file back, or DROP the foreign table.",
        ),
        // Not the system's, but that of a name with a link.
        files::Error::Io(io)
            if io.kind() == std::io::ErrorKind::PermissionDenied && io.raw_os_error().is_none() =>
        {
            error::raise(Code::ERRCODE_INSUFFICIENT_PRIVILEGE, message, &detail, "")
        }
        files::Error::Io(io) if io.kind() == std::io::ErrorKind::PermissionDenied => error::raise(
            Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            message,
            &detail,
            "The file has to be the user's that runs the server.",
        ),
        files::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => {
            error::raise(Code::ERRCODE_DISK_FULL, message, &detail, "Make room on the device.")
        }
        files::Error::Io(_) => error::raise(Code::ERRCODE_IO_ERROR, message, &detail, ""),
        files::Error::Unsupported(_) => error::not_supported(message, &detail, ""),
        files::Error::Malformed(_) => error::raise(
            Code::ERRCODE_DATA_CORRUPTED,
            message,
            &detail,
            "Restore the file from a backup, or DROP the foreign table.",
        ),
    }
}
