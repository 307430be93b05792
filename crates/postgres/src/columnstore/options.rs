//! What `CREATE INDEX ... USING columnstore (...) WITH (...)` takes.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use encodings::Codec;
use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, relopt_enum_elt_def, relopt_type};
use stripe::StripeOptions;

use crate::compat;
use crate::host::relation::Open;
use crate::storage::file::codecs::ServerCodecs;

const COMPRESSION: &CStr = c"compression_type";
const LEVEL: &CStr = c"compression_level";
const CHUNK_ROWS: &CStr = c"chunk_group_row_limit";
const REFRESH: &CStr = c"refresh";
const LEVEL_DEFAULT: c_int = 5;
const CHUNK_ROWS_DEFAULT: c_int = 10_000;

/// The parsed options, as the relation cache keeps them.
#[repr(C)]
struct Parsed {
    length: i32,
    compression: c_int,
    level: c_int,
    chunk_rows: c_int,
    refresh: bool,
}

/// Values of `compression_type`, by their numbers.
const CODECS: [(&CStr, Codec); 3] = [(c"none", Codec::None), (c"lz4", Codec::Lz4), (c"zstd", Codec::Zstd)];
const ZSTD: c_int = 2;

static KIND: OnceLock<pg_sys::relopt_kind::Type> = OnceLock::new();

/// Defines the options.
///
/// # Safety
/// Runs once per process, while the library is loaded.
pub unsafe fn register() {
    // SAFETY: the caller's promise. The server keeps the members of the enumeration, which are leaked.
    unsafe {
        let kind = pg_sys::add_reloption_kind();
        let lock = pg_sys::ShareUpdateExclusiveLock as c_int;
        let none = relopt_enum_elt_def { string_val: std::ptr::null(), symbol_val: 0 };
        let members = (0..)
            .zip(CODECS)
            .map(|(number, (name, _))| relopt_enum_elt_def { string_val: name.as_ptr(), symbol_val: number });
        let members: Vec<_> = members.chain([none]).collect();
        pg_sys::add_enum_reloption(
            kind,
            COMPRESSION.as_ptr(),
            c"Block codec of the copies".as_ptr(),
            Vec::leak(members).as_mut_ptr(),
            ZSTD,
            c"Valid values are \"none\", \"lz4\" and \"zstd\".".as_ptr(),
            lock,
        );
        let integer = |name: &CStr, what: &CStr, default, least, most| {
            pg_sys::add_int_reloption(kind, name.as_ptr(), what.as_ptr(), default, least, most, lock);
        };
        integer(LEVEL, c"Level of the block codec; only zstd has levels", LEVEL_DEFAULT, 1, 9);
        integer(CHUNK_ROWS, c"Most rows of a chunk", CHUNK_ROWS_DEFAULT, 1000, 1_000_000);
        let what = c"Whether blocks are copied in the background and after VACUUM";
        pg_sys::add_bool_reloption(kind, REFRESH.as_ptr(), what.as_ptr(), true, lock);
        let _ = KIND.set(kind as pg_sys::relopt_kind::Type);
    }
}

/// `amoptions`.
#[pg_guard]
pub unsafe extern "C-unwind" fn parse(options: Datum, validate: bool) -> *mut pg_sys::bytea {
    let element = |name: &CStr, kind, offset: usize| compat::option(name, kind, offset as c_int);
    let table = [
        element(COMPRESSION, relopt_type::RELOPT_TYPE_ENUM, std::mem::offset_of!(Parsed, compression)),
        element(LEVEL, relopt_type::RELOPT_TYPE_INT, std::mem::offset_of!(Parsed, level)),
        element(CHUNK_ROWS, relopt_type::RELOPT_TYPE_INT, std::mem::offset_of!(Parsed, chunk_rows)),
        element(REFRESH, relopt_type::RELOPT_TYPE_BOOL, std::mem::offset_of!(Parsed, refresh)),
    ];
    // SAFETY: the server's array of options, or null; offsets lie in the struct of that size.
    unsafe {
        let kind = KIND.get().copied().unwrap_or_default();
        let size = size_of::<Parsed>();
        pg_sys::build_reloptions(options, validate, kind, size, table.as_ptr(), table.len() as c_int).cast()
    }
}

/// Whether an index is refreshed without being asked to.
pub fn is_refreshed(index: Open) -> bool {
    // SAFETY: the relation cache has null, or what `parse` has made.
    unsafe { (*index.as_ptr()).rd_options.cast::<Parsed>().as_ref() }.is_none_or(|parsed| parsed.refresh)
}

/// How copies of an index are written.
pub fn stripe_options(index: Open) -> StripeOptions<'static> {
    // SAFETY: the relation cache has null, or what `parse` has made.
    let parsed = unsafe { (*index.as_ptr()).rd_options.cast::<Parsed>().as_ref() };
    let (codec, level, chunk_rows) = parsed.map_or((ZSTD, LEVEL_DEFAULT, CHUNK_ROWS_DEFAULT), |parsed| {
        (parsed.compression, parsed.level, parsed.chunk_rows)
    });
    StripeOptions {
        chunk_rows: u32::try_from(chunk_rows).unwrap_or(1).max(1),
        codec: usize::try_from(codec)
            .ok()
            .and_then(|at| CODECS.get(at))
            .map_or(Codec::None, |(_, codec)| *codec),
        level,
        codecs: &ServerCodecs,
        ..StripeOptions::default()
    }
}
