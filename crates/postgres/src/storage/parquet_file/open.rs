//! The bytes of Parquet files.

use std::fs::File;
use std::ops::Range;
use std::rc::Rc;

use files::column::Ranges;
use stripe::StripeBytes;
use vector::Result;

use super::footer::{Identity, KnownFile};
use crate::storage::open_files;

/// The bytes of a file, where its row groups have them.
pub struct Bytes(pub Rc<KnownFile>);

impl Bytes {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> files::Result<()> {
        let KnownFile { path, identity, .. } = &*self.0;
        // Memory for what cannot be there is not asked for.
        if range.end > self.0.length() {
            return Err(files::Error::Malformed(format!("it ends before byte {}", range.end)));
        }
        let is_same = |file: &File| Ok(Identity::of(&file.metadata()?) == *identity);
        let file = open_files::open(path, is_same)?;
        file.read(range, out)?;
        // What is read goes by the footer of before.
        match is_same(&file)? {
            true => Ok(()),
            false => Err(std::io::Error::other("it was written while it was read").into()),
        }
    }
}

impl StripeBytes for Bytes {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.read(range, out).map_err(|problem| self.0.located(&problem))
    }
}
