//! What a scan reads as stripes: those of a table (`store`), the row groups of Parquet files (`groups`), or
//! the stripes of a column file that the table did not write (`others`).

use std::ops::Range;
use std::rc::Rc;

use encodings::BlockCodecs;
use files::column::TableStripe;
use files::parquet::RowGroup;
use stripe::scan::{RowsOut, Store, StripeInfo};
use stripe::{OpenStripe, StripeBytes};
use vector::Result;

use super::groups::Groups;
use super::others::Others;
use super::store::{self, OwnStripes};
use crate::storage::column_file::others;
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::parquet_file;
use crate::storage::read::stripe_on_pages::StripeHandle;

/// The stripes of a scan.
pub enum Stripes {
    /// Of a table.
    Own(Box<OwnStripes>),
    /// Of a Parquet file.
    Groups(Groups),
    /// Of a column file that the table did not write.
    Others(Others),
}

impl Stripes {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Own(own) => own.len(),
            Self::Groups(groups) => groups.len(),
            Self::Others(others) => others.len(),
        }
    }
}

/// A stripe that is open.
#[derive(Clone)]
pub enum Opened {
    /// Of a table.
    Own(Rc<StripeHandle>),
    /// Of a Parquet file.
    Group(Rc<RowGroup>),
    /// Of a column file that the table did not write.
    Others(Rc<TableStripe>),
}

/// The bytes of a stripe.
pub enum Bytes<'a> {
    /// Of a table.
    Own(store::Bytes<'a>),
    /// Of a Parquet file.
    File(parquet_file::Bytes),
    /// Of a column file that the table did not write.
    Others(others::Bytes),
}

impl StripeBytes for Bytes<'_> {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Own(bytes) => bytes.read(range, out),
            Self::File(bytes) => bytes.read(range, out),
            Self::Others(bytes) => bytes.read(range, out),
        }
    }
}

impl Store for Stripes {
    type Stripe = Opened;
    type Bytes<'a> = Bytes<'a>;

    fn stripe(&self, at: usize) -> Option<StripeInfo<'_>> {
        match self {
            Self::Own(own) => own.stripe(at),
            Self::Groups(groups) => groups.stripe(at),
            Self::Others(others) => others.stripe(at),
        }
    }

    fn open(&self, at: usize) -> Result<Opened> {
        match self {
            Self::Own(own) => own.open(at).map(Opened::Own),
            Self::Groups(groups) => groups.open(at).map(Opened::Group),
            Self::Others(others) => others.open(at).map(Opened::Others),
        }
    }

    fn reader(stripe: &Opened) -> &dyn OpenStripe {
        match stripe {
            Opened::Own(own) => &own.reader,
            Opened::Group(group) => group.as_ref(),
            Opened::Others(stripe) => stripe.as_ref(),
        }
    }

    fn bytes(&self, at: usize) -> Result<Bytes<'_>> {
        match self {
            Self::Own(own) => own.bytes(at).map(Bytes::Own),
            Self::Groups(groups) => groups.bytes(at).map(Bytes::File),
            Self::Others(others) => others.bytes(at).map(Bytes::Others),
        }
    }

    /// A file has no rows that are out.
    fn rows_out(&self, rows: Range<u64>, out: &mut RowsOut) {
        if let Self::Own(own) = self {
            own.rows_out(rows, out);
        }
    }

    fn codecs(&self) -> &'static dyn BlockCodecs {
        &ServerCodecs
    }

    fn number(&self) -> u32 {
        match self {
            Self::Own(own) => own.number(),
            Self::Groups(groups) => groups.number(),
            Self::Others(others) => others.number(),
        }
    }

    fn pause(&self) {
        match self {
            Self::Own(own) => own.pause(),
            Self::Groups(_) | Self::Others(_) => {
                pgrx::check_for_interrupts!();
            }
        }
    }

    fn reach(&self) -> u64 {
        if let Self::Own(own) = self { own.reach() } else { 0 }
    }

    fn read_ahead(&self, at: usize, ranges: &[Range<u64>]) -> u64 {
        if let Self::Own(own) = self { own.read_ahead(at, ranges) } else { 0 }
    }

    fn await_ahead(&self, number: u64) {
        if let Self::Own(own) = self {
            own.await_ahead(number);
        }
    }

    fn stop_ahead(&self) {
        if let Self::Own(own) = self {
            own.stop_ahead();
        }
    }
}
