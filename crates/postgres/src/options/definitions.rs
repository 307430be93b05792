//! The one list of the options that our tables have: names, types, ranges, defaults, and which access methods
//! have them.
//!
//! Everything that names an option (statements, functions, settings, error texts) reads it from here.
//! A value is checked and brought to its stored spelling by [`normalise`]; `orderby` needs the table's
//! columns as well and is checked by `orderby.rs` when it is stored.

use super::access_method::AccessMethod;
use super::report::{self, Refusal};
use pgrx::pg_sys;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use std::ffi::{CStr, CString};

/// Bounds and defaults shared with the settings in `settings`.
pub const LEVEL_MIN: i32 = 1;
/// The highest level zstd offers without its slow "ultra" range.
pub const LEVEL_MAX: i32 = 19;
/// Default level.
pub const LEVEL_DEFAULT: i32 = 3;
/// The lowest limit of rows of a stripe or a chunk. With fewer rows, the overhead of each chunk exceeds the
/// data.
pub const ROWS_MIN: i32 = 1_000;
/// Most rows of a stripe. A stripe also ends at its byte cap, long before this for any ordinary row.
pub const STRIPE_ROWS_MAX: i32 = 10_000_000;
/// Default rows of a stripe.
pub const STRIPE_ROWS_DEFAULT: i32 = 150_000;
/// Most rows of a chunk, the unit of decoding.
pub const CHUNK_ROWS_MAX: i32 = 1_000_000;
/// Default rows of a chunk.
pub const CHUNK_ROWS_DEFAULT: i32 = 10_000;

/// Fewest rows of a batch of a rowcompress table.
pub const BATCH_ROWS_MIN: i32 = 100;
/// Default rows of a batch.
pub const BATCH_ROWS_DEFAULT: i32 = 10_000;

/// By default, packing in the background makes a stripe of at least this many heap rows.
pub const PACKING_ROWS_DEFAULT: i32 = 10_000;

/// The block codecs, in the order the enum [`super::Compression`] has.
pub const CODECS: [&str; 4] = ["none", "pglz", "lz4", "zstd"];

/// What values an option takes.
#[derive(Clone, Copy)]
pub enum Kind {
    /// An integer within the bounds, both included.
    Integer { min: i32, max: i32 },
    /// One of a list of words.
    Choice(&'static [&'static str]),
    /// Anything the server takes for a boolean.
    Boolean,
    /// A list of columns, as after ORDER BY.
    Columns,
    /// The name of a column.
    Column,
}

/// One option.
pub struct Definition {
    /// As written in WITH (...) and stored in `pg_class.reloptions`.
    pub name: &'static CStr,
    /// Its values.
    pub kind: Kind,
    /// The access methods whose tables have it.
    pub methods: &'static [AccessMethod],
}

/// Which option: an index into [`DEFINITIONS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionId(usize);

/// `compression`
pub const COMPRESSION: OptionId = OptionId(0);
/// `compression_level`
pub const COMPRESSION_LEVEL: OptionId = OptionId(1);
/// `stripe_row_limit`
pub const STRIPE_ROW_LIMIT: OptionId = OptionId(2);
/// `chunk_group_row_limit`
pub const CHUNK_GROUP_ROW_LIMIT: OptionId = OptionId(3);
/// `orderby`
pub const ORDERBY: OptionId = OptionId(4);
/// `index_scan`
pub const INDEX_SCAN: OptionId = OptionId(5);
/// `packing`
pub const PACKING: OptionId = OptionId(6);
/// `packing_rows`
pub const PACKING_ROWS: OptionId = OptionId(7);
/// `batch_size`
pub const BATCH_SIZE: OptionId = OptionId(8);
/// `pruning_column`: another way to say `orderby`, as which it is stored
pub const PRUNING_COLUMN: OptionId = OptionId(9);

const ANY: &[AccessMethod] = &AccessMethod::ALL;
const COLUMNS: &[AccessMethod] = &[AccessMethod::Colcompress];
const ROWS: &[AccessMethod] = &[AccessMethod::Rowcompress];

const fn define(name: &'static CStr, methods: &'static [AccessMethod], kind: Kind) -> Definition {
    Definition { name, kind, methods }
}

/// Every option, in the order error texts list them.
pub static DEFINITIONS: [Definition; 10] = [
    define(c"compression", ANY, Kind::Choice(&CODECS)),
    define(c"compression_level", ANY, Kind::Integer { min: LEVEL_MIN, max: LEVEL_MAX }),
    define(c"stripe_row_limit", COLUMNS, Kind::Integer { min: ROWS_MIN, max: STRIPE_ROWS_MAX }),
    define(c"chunk_group_row_limit", ANY, Kind::Integer { min: ROWS_MIN, max: CHUNK_ROWS_MAX }),
    define(c"orderby", ANY, Kind::Columns),
    define(c"index_scan", ANY, Kind::Boolean),
    define(c"packing", ANY, Kind::Boolean),
    define(c"packing_rows", ANY, Kind::Integer { min: 1, max: i32::MAX }),
    define(c"batch_size", ROWS, Kind::Integer { min: BATCH_ROWS_MIN, max: STRIPE_ROWS_MAX }),
    define(c"pruning_column", ROWS, Kind::Column),
];

impl OptionId {
    /// The option called `name`, compared as the server compares option names: exactly.
    pub fn find(name: &CStr) -> Option<OptionId> {
        DEFINITIONS.iter().position(|d| d.name == name).map(OptionId)
    }

    /// Do tables of this access method have it?
    pub fn is_of(self, method: AccessMethod) -> bool {
        self.definition().methods.contains(&method)
    }

    /// An access method whose tables have it: `colcompress` if those do.
    pub fn usual_method(self) -> &'static str {
        let first = self.definition().methods.first().unwrap_or(&AccessMethod::Colcompress);
        first.name().to_str().unwrap_or("")
    }

    /// The access methods whose tables have it, for messages.
    pub fn methods(self) -> String {
        let names = self.definition().methods.iter().map(|method| method.name().to_string_lossy());
        names.collect::<Vec<_>>().join(" and ")
    }

    /// All options.
    pub fn all() -> impl Iterator<Item = OptionId> {
        (0..DEFINITIONS.len()).map(OptionId)
    }

    /// Its row of [`DEFINITIONS`].
    pub fn definition(self) -> &'static Definition {
        &DEFINITIONS[self.0]
    }

    /// Its name as text for messages.
    pub fn name(self) -> &'static str {
        self.definition().name.to_str().unwrap_or("")
    }

    /// Which values it takes, for messages.
    pub fn allowed(self) -> String {
        self.definition().kind.allowed()
    }
}

impl Kind {
    /// Which values these are, for messages.
    pub fn allowed(self) -> String {
        match self {
            Self::Integer { min, max } => format!("an integer from {min} to {max}"),
            Self::Choice(words) => words.join(", "),
            Self::Boolean => "true, false".into(),
            Self::Columns => {
                "columns of the table, each with [ASC | DESC] [NULLS FIRST | NULLS LAST], commas between them"
                    .into()
            }
            Self::Column => "the name of a column".into(),
        }
    }
}

/// The names of all options of an access method, for messages.
pub fn names_of(method: AccessMethod) -> String {
    let options = OptionId::all().filter(|option| option.is_of(method));
    options.map(OptionId::name).collect::<Vec<_>>().join(", ")
}

/// Checks `value` and returns its stored spelling. A list of columns passes unchanged.
pub fn normalise(option: OptionId, value: &CStr) -> Result<CString, Refusal> {
    let refuse = || {
        Refusal::new(
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("invalid value for option \"{}\": \"{}\"", option.name(), report::text(value)),
        )
        .detail(format!("Allowed: {}.", option.allowed()))
    };
    let stored = match option.definition().kind {
        Kind::Integer { min, max } => {
            let number = integer(value).ok_or_else(refuse)?;
            if number < min || number > max {
                return Err(refuse());
            }
            number.to_string()
        }
        Kind::Choice(words) => {
            let value = value.to_bytes();
            let word = words.iter().find(|w| w.as_bytes().eq_ignore_ascii_case(value));
            (*word.ok_or_else(refuse)?).to_owned()
        }
        Kind::Boolean => boolean(value).ok_or_else(refuse)?.to_string(),
        Kind::Columns | Kind::Column => return Ok(value.to_owned()),
    };
    CString::new(stored).map_err(|_| refuse())
}

/// A decimal integer, with blanks around it.
pub fn integer(value: &CStr) -> Option<i32> {
    value.to_str().ok()?.trim().parse().ok()
}

/// A boolean as the server's configuration reads it.
pub fn boolean(value: &CStr) -> Option<bool> {
    let mut truth = false;
    // SAFETY: a string, which is only read.
    unsafe { pg_sys::parse_bool(value.as_ptr(), &mut truth) }.then_some(truth)
}
