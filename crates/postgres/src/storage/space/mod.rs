//! The room that stripes take in the file.
//!
//! - `runs`: puts a new run on pages that hot rows have left, or at the end of the file
//! - `emptied_pages`: finds and takes such pages
//! - `dead_blocks`: counts the pages that are still to be given back
//! - `free`: gives pages back that no version of the directory names
//! - `restore_bits`: gives stripe pages the visibility-map bits back that they have lost
//! - `truncate`: cuts off the end of the file
//!
//! Invariant: an empty heap page becomes a stripe page, and a stripe page an empty heap page, under
//! ShareUpdateExclusiveLock only.

pub mod dead_blocks;
pub mod emptied_pages;
pub mod free;
pub mod restore_bits;
pub mod runs;
pub mod truncate;
