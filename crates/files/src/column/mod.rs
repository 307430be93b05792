//! Column files: stripes in one file that says itself what is in it. FORMAT.md describes the bytes.
//!
//! A file is only appended to. Each load writes stripes, then what is known of them (a *segment*), then a
//! footer that names the columns and all segments. At last it writes in the file's head where the footer is.
//! The head has two places for that, used in turn. So whatever ends a load early, the file has the rows of
//! the loads that were finished, and nobody who reads meanwhile sees half of one.
//!
//! - `head`: the first 4 kB
//! - `footer`: columns and segments; `segment`: stripes; `sealed`: what both have in common; `default`: what
//!   rows have that are older than a column
//! - `ranges`: where the bytes come from
//! - `read`: a file that is open; `write`: a load
//! - `table`: its stripes by the columns of a table that did not write it
//! - `owned`: a file whose stripes a server keeps account of

mod default;
mod footer;
mod head;
mod owned;
mod ranges;
mod read;
mod sealed;
mod segment;
mod table;
mod write;

pub use default::ColumnDefault;
pub use encodings::Codec;
pub use footer::Column;
pub use head::{MAGIC, Owner};
pub use owned::{OwnedFile, Publication};
pub use ranges::{Ranges, within};
pub use read::{ColumnFile, OpenStripe};
pub use segment::StripePlace;
pub use table::{TableColumns, TableStripe};
pub use write::{ColumnWriter, Loaded, WriteOptions};

use crate::Error;

/// Bytes that break the format, in the part of this name.
fn broken(part: &str, error: &vector::Error) -> Error {
    match error {
        vector::Error::Unsupported(what) => Error::Unsupported(what.clone()),
        other => Error::Malformed(format!("the {part} is damaged: {other}")),
    }
}
