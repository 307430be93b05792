//! The index access method `columnstore`: a columnar copy of a heap table, for scans.
//!
//! The heap stays the truth. The index holds copies of whole heap blocks, and a scan uses the copy of a block
//! where two looks, in this order, say so: the block is all-visible in the visibility map, and the index's
//! map names the copy. Of a block that is not all-visible, but has a copy, the heap page says which of the
//! copy's rows are seen. All other blocks are read from the heap. `docs/internals/columnstore.md` has the
//! proof.
//!
//! - `access_method`: the table of callbacks; `options`: what WITH takes; `indexed`: which tables have one
//! - `layout`: metapage, root pages and region pages as bytes; `regions`: finding, making and changing them
//! - `visibility`: the heap's visibility map, a region at a time
//! - `insert`, `vacuum`: a block has changed, so its copy no longer counts
//! - `refresh`: which blocks are copied; `making`: a copy, and when it counts; `copy`: heap blocks become
//!   columns; `space`: pages of replaced copies are used again; `progress`: how far it is
//! - who refreshes: `build` (CREATE INDEX), `after_statement` (VACUUM, CONCURRENTLY), `background`,
//!   `procedure` (`settings`: when)
//! - `cover`: what of a table a scan reads from copies, and what from the heap; `checked`: which rows of a
//!   copy a snapshot sees; `estimate`: how much that will be, for the planner
//! - `verify`: copies held against the heap's rows; `report`: what the view shows
//! - `stop`: where tests come in between
//!
//! Invariants: an entry of the map names a copy only while the copy has all rows of the block that a snapshot
//! can see, with the values of all their versions. Whoever adds a row sets the entry to none before anybody
//! else can see it. Whoever takes one away does so before its line pointer is used again. The bytes of a copy
//! never change.

mod access_method;
mod after_statement;
mod background;
mod build;
pub mod checked;
mod copy;
pub mod cover;
pub mod estimate;
mod indexed;
mod insert;
mod layout;
mod making;
mod options;
mod procedure;
mod progress;
mod refresh;
mod regions;
mod report;
mod settings;
mod space;
mod stop;
mod vacuum;
mod verify;
mod visibility;

pub use access_method::{attributes, is_ours, is_planned};
pub use after_statement::refresh_all as after_statement;
pub use indexed::has_index;
pub use verify::check as verify;

use crate::table_am::packing::further::{self, Further};

/// Defines options and settings, and has the background refresh indexes.
///
/// # Safety
/// Runs once per process, while the library is loaded.
pub unsafe fn register() {
    // SAFETY: the caller's promise.
    unsafe {
        options::register();
        settings::register();
        stop::register();
        further::register(Further { is_on: settings::is_on, round: background::round });
    }
}
