//! Options of colcompress tables: how a user sets them, where they are kept, and which values are in force.
//!
//! Users write them in `WITH (...)`, `ALTER TABLE ... SET/RESET (...)` or call
//! `engine.alter_colcompress_table_set/reset`. They are stored in `pg_class.reloptions`, so `\d+` shows them
//! and pg_dump keeps them. The server has no hook for options of table access methods: `hooks.rs` takes ours
//! out of a statement before the server would refuse them, and stores them itself (`create.rs`, `alter.rs`).
//!
//! Writers and scans ask [`table_options`]. An option that is not set has the value of its setting
//! (`colonnade.compression` and so on) at that moment.

mod access_method;
mod alter;
mod brin;
pub mod catalog;
mod columns;
mod create;
pub mod definitions;
pub mod foreign;
mod frames;
mod functions;
mod hidden;
mod hooks;
pub mod maintenance;
mod nodes;
pub mod orderby;
mod repack;
pub mod report;
mod schema;
pub mod server_files;
pub mod settings;
mod statement;

pub use access_method::{
    AccessMethod, is_our_relation, method_and_kind, of as access_method_of, of_table, oids,
};
pub use orderby::SortKey;

use crate::host::relation::Open;
use definitions::OptionId;
use pgrx::PgLogLevel;
use pgrx::guc::PostgresGucEnum;
use pgrx::pg_sys::{self, Oid};
use stripe::Layout;

/// Block codec of a table's chunks. Also the type of the setting `colonnade.compression`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PostgresGucEnum)]
pub enum Compression {
    /// Encodings only.
    #[name = c"none"]
    None,
    /// The server's own codec.
    #[name = c"pglz"]
    Pglz,
    /// LZ4
    #[name = c"lz4"]
    Lz4,
    /// Zstandard
    #[name = c"zstd"]
    Zstd,
}

impl Compression {
    fn from_name(name: &[u8]) -> Option<Compression> {
        let all = [Compression::None, Compression::Pglz, Compression::Lz4, Compression::Zstd];
        all.into_iter().find(|c| c.name().as_bytes() == name)
    }

    /// As written in the option.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Pglz => "pglz",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// The options of one table, with defaults filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableOptions {
    /// How the values of a stripe lie.
    pub layout: Layout,
    /// Block codec.
    pub compression: Compression,
    /// The codec's level, 1 to 19. Codecs without levels ignore it.
    pub compression_level: i32,
    /// Most rows of a stripe.
    pub stripe_row_limit: u32,
    /// Most rows of a chunk. Never more than `stripe_row_limit`.
    pub chunk_group_row_limit: u32,
    /// The order in which a bulk load and a merge write rows. Empty for the order in which they come.
    pub orderby: Vec<SortKey>,
    /// May the planner choose index scans of cold rows over scans of stripes?
    pub index_scan: bool,
    /// May heap rows be packed in the background?
    pub packing: bool,
    /// Packing in the background makes a stripe of at least this many heap rows.
    pub packing_rows: u32,
}

/// How stripes of `rel`, a relation of ours, are written.
pub fn layout(rel: Open) -> Layout {
    access_method::of(rel).map_or(Layout::Columns, AccessMethod::layout)
}

/// The options of `rel`, which must be a relation of ours. Costs one look into the catalog cache: ask once
/// per statement, not per row.
pub fn table_options(rel: Open) -> TableOptions {
    // SAFETY: a catalog look-up.
    unsafe { options_of(rel.oid()) }
}

/// The options of the relation `table`. If a column of `orderby` cannot be found or sorted, the order ends
/// before it, with a WARNING. That happens only if the catalog was changed without this library.
///
/// # Safety
/// Inside a transaction.
pub unsafe fn options_of(table: Oid) -> TableOptions {
    let found = access_method::method_and_kind(table);
    if found.is_some_and(|(_, kind)| kind == pg_sys::RELKIND_FOREIGN_TABLE) {
        return foreign::table_options(table);
    }
    let layout = found
        .filter(|&(_, kind)| access_method::has_rows(kind))
        .and_then(|(method, _)| access_method::of_method(method))
        .map_or(Layout::Columns, AccessMethod::layout);
    let settings = catalog::read(table);
    let integer = |option: OptionId, default: i32| {
        settings.get(option).and_then(definitions::integer).unwrap_or(default)
    };
    let rows = |option, default| u32::try_from(integer(option, default)).unwrap_or(1);
    let stripe_row_limit = match layout {
        Layout::Columns => rows(definitions::STRIPE_ROW_LIMIT, settings::STRIPE_ROW_LIMIT.get()),
        Layout::Blocks => rows(definitions::BATCH_SIZE, settings::BATCH_SIZE.get()),
    };
    let chunk_rows = rows(definitions::CHUNK_GROUP_ROW_LIMIT, settings::CHUNK_GROUP_ROW_LIMIT.get());
    TableOptions {
        layout,
        compression: settings
            .get(definitions::COMPRESSION)
            .and_then(|v| Compression::from_name(v.to_bytes()))
            .unwrap_or_else(|| settings::COMPRESSION.get()),
        compression_level: integer(definitions::COMPRESSION_LEVEL, settings::COMPRESSION_LEVEL.get()),
        stripe_row_limit,
        chunk_group_row_limit: chunk_rows.min(stripe_row_limit),
        orderby: match settings.get(definitions::ORDERBY) {
            Some(value) => usable_keys(table, value),
            None => Vec::new(),
        },
        index_scan: index_scan(&settings),
        packing: boolean(&settings, definitions::PACKING, true),
        packing_rows: rows(definitions::PACKING_ROWS, settings::PACKING_ROWS.get()),
    }
}

/// The option `index_scan` alone, for the planner. It looks at nothing else, so it raises no WARNING about
/// anything else.
pub fn allows_index_scans(rel: Open) -> bool {
    index_scan(&catalog::read(rel.oid()))
}

fn index_scan(settings: &catalog::Settings) -> bool {
    boolean(settings, definitions::INDEX_SCAN, false)
}

fn boolean(settings: &catalog::Settings, option: OptionId, default: bool) -> bool {
    settings.get(option).and_then(definitions::boolean).unwrap_or(default)
}

fn usable_keys(table: Oid, value: &std::ffi::CStr) -> Vec<SortKey> {
    let named = match orderby::parse(value) {
        Ok(named) => named,
        Err(refusal) => {
            refusal.send(PgLogLevel::WARNING);
            return Vec::new();
        }
    };
    let mut keys = Vec::with_capacity(named.len());
    for key in &named {
        match orderby::resolve_key(table, key) {
            Ok(key) => keys.push(key),
            Err(refusal) => {
                refusal.send(PgLogLevel::WARNING);
                break;
            }
        }
    }
    keys
}

/// Whether a table or materialized view is ours, by its OID.
pub fn is_columnar(table: Oid) -> bool {
    access_method::is_our_table(table)
}

/// Installs the hooks. `routine` returns the routine of one of our table access methods. `order_was_set` is
/// told of each table whose option `orderby` a statement has set.
///
/// # Safety
/// Call it from `_PG_init`, after `settings::register`.
pub unsafe fn register(
    routine: fn(AccessMethod) -> *const pg_sys::TableAmRoutine,
    order_was_set: unsafe fn(Oid),
) {
    access_method::register(routine);
    alter::register(order_was_set);
    frames::register();
    hidden::register();
    hooks::register();
}

/// The value in force of one option of a table, as users write it. None if it is `orderby` and no order is
/// set.
fn shown(table: Oid, option: OptionId) -> Option<std::ffi::CString> {
    if option == definitions::ORDERBY {
        return catalog::read(table).get(option).map(std::ffi::CStr::to_owned);
    }
    if option == definitions::PRUNING_COLUMN {
        let settings = catalog::read(table);
        let keys = orderby::parse(settings.get(definitions::ORDERBY)?).ok()?;
        return keys.into_iter().next().map(|key| key.column);
    }
    // SAFETY: inside the call of a function.
    let options = unsafe { options_of(table) };
    let text = match option {
        definitions::COMPRESSION => options.compression.name().to_owned(),
        definitions::COMPRESSION_LEVEL => options.compression_level.to_string(),
        definitions::STRIPE_ROW_LIMIT | definitions::BATCH_SIZE => options.stripe_row_limit.to_string(),
        definitions::CHUNK_GROUP_ROW_LIMIT => options.chunk_group_row_limit.to_string(),
        definitions::PACKING => options.packing.to_string(),
        definitions::PACKING_ROWS => options.packing_rows.to_string(),
        _ => options.index_scan.to_string(),
    };
    std::ffi::CString::new(text).ok()
}
