//! A file whose stripes a server keeps account of: its catalogs say which of them count, and for whom.
//!
//! The server appends stripes, each at a place of its own choice past all others. What the file says of
//! itself is for readers without that server. It is written when a transaction is about to commit
//! (`publish`), and comes to count afterwards (`Publication::name`). A file that says less than the catalogs
//! do has lost nothing: the next load says all of it.
//!
//! Invariant: no byte behind the head is written twice. So whoever has an older footer reads on.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use stripe::StripeReader;

use super::default::ColumnDefault;
use super::footer::{Column, Footer, SegmentPlace};
use super::head::{self, HEAD_BYTES, Owner, Place};
use super::segment::{self, StripePlace};
use super::write::{MOST_SEGMENTS, identity};
use super::{ColumnFile, Ranges};
use crate::{Error, FilePath, Result};

/// Room is given back in pieces of so many bytes.
const BLOCK: u64 = 4096;

/// A file that a server owns, open.
#[derive(Debug)]
pub struct OwnedFile {
    file: File,
    owner: Owner,
}

/// What a file comes to say of itself once a transaction has committed.
#[derive(Debug)]
pub struct Publication(Place);

impl OwnedFile {
    /// Makes a new file without rows. Nobody but its user may read it.
    ///
    /// # Errors
    /// `Io` where there is a file of that name, or none can be made.
    pub fn create(path: &FilePath, owner: Owner) -> Result<Self> {
        // Nobody is to find it before it has its head.
        let other = path.with_ending(&format!(".{:016x}", owner.storage_id));
        let made = || {
            let file = other.create_new(0o600)?;
            let mut head = head::new(identity());
            owner.write(&mut head);
            file.write_all_at(&head, 0)?;
            file.sync_all()?;
            // Fails where there is a file of that name.
            other.link_as(path)?;
            Ok::<_, Error>(file)
        };
        let file = made();
        let _ = other.remove();
        path.sync_folder()?;
        Ok(Self { file: file?, owner })
    }

    /// Opens a file that has an owner. None: it has none.
    ///
    /// # Errors
    /// `Io` where it cannot be opened or is taken away meanwhile, `Malformed` where it is no column file or
    /// its head is damaged.
    pub fn open(path: &FilePath, to_write: bool) -> Result<Option<Self>> {
        // A pipe would be waited for.
        if !path.metadata()?.is_file() {
            return Err(Error::Malformed("it is no file, or not a plain one".into()));
        }
        let file = path.open(to_write)?;
        let owner = unless_taken_away(&file, |head| {
            head::newest(head)?;
            Owner::read(head)
        })?;
        Ok(owner.map(|owner| Self { file, owner }))
    }

    /// Whose it is.
    pub const fn owner(&self) -> Owner {
        self.owner
    }

    /// How many bytes it has, those of loads that were rolled back among them.
    ///
    /// # Errors
    /// `Io`.
    pub fn length(&self) -> Result<u64> {
        self.file.length()
    }

    /// Whether the file says of itself that some load was finished.
    ///
    /// # Errors
    /// As `open`.
    pub fn was_published(&self) -> Result<bool> {
        unless_taken_away(&self.file, |head| Ok(head::newest(head)?.is_some()))
    }

    /// Takes the file away and gives all of its room back, also where others have it open. `path` is the name
    /// that it was opened by. Who reads it meets an error from then on.
    ///
    /// # Errors
    /// `Io`.
    pub fn take_away(self, path: &FilePath) -> Result<()> {
        // In this order: who opens a file that is empty sees that it has no name any more.
        path.remove()?;
        Ok(self.file.set_len(0)?)
    }

    /// Writes bytes where there were none before.
    ///
    /// # Errors
    /// `Io`.
    pub fn put(&self, bytes: &[u8], at: u64) -> Result<()> {
        Ok(self.file.write_all_at(bytes, at)?)
    }

    /// Writes at byte `at` what the file says of itself, and waits until all of the file is on the device.
    /// `stripes` are those that count, in their order; columns of theirs that are empty are looked up.
    /// `defaults` are what older rows have in a column, where that is not NULL. Of a column that all stripes
    /// have it says nothing.
    ///
    /// # Errors
    /// `Io` where it cannot be written, `Malformed` where a stripe is damaged.
    pub fn publish(
        &self,
        mut at: u64,
        columns: Vec<Column>,
        defaults: Vec<ColumnDefault>,
        stripes: Vec<StripePlace>,
    ) -> Result<Publication> {
        let head = head_of(&self.file)?;
        let newest = head::newest(&head)?;
        let mut footer = Footer { columns, ..Footer::default() };
        let mut of_stripes: Vec<Arc<[u32]>> = Vec::new();
        // What the file says already stays as it is, if it is the beginning of what it is to say.
        let known = ColumnFile::open(self.file.try_clone()?).ok();
        let known = known.filter(|known| {
            let places = known.stripes().iter().map(|stripe| &stripe.bytes);
            known.stripes().len() <= stripes.len()
                && places.eq(stripes.iter().map(|new| &new.bytes).take(known.stripes().len()))
        });
        let said = known.as_ref().map_or(0, |known| known.stripes().len());
        let mut rest = stripes.into_iter().skip(said).collect::<Vec<_>>();
        if let Some(known) = known {
            of_stripes.extend(known.stripes().iter().map(|stripe| Arc::clone(&stripe.columns)));
            footer.segments.clone_from(known.segments());
            if footer.segments.len() >= MOST_SEGMENTS {
                footer.segments.clear();
                rest.splice(0..0, known.stripes().iter().cloned());
            }
        }
        for stripe in rest.iter_mut().filter(|stripe| stripe.columns.is_empty()) {
            stripe.columns = self.columns_of(stripe)?;
        }
        of_stripes.extend(rest.iter().map(|stripe| Arc::clone(&stripe.columns)));
        of_stripes.dedup();
        let is_lacked = |number| of_stripes.iter().any(|columns| !columns.contains(&number));
        footer.defaults = defaults.into_iter().filter(|(number, _)| is_lacked(*number)).collect();
        for alike in rest.chunk_by(|one, other| one.columns == other.columns) {
            let Some(first) = alike.first() else { continue };
            let bytes = segment::write(&first.columns, alike);
            self.put(&bytes, at)?;
            let rows = alike.iter().map(|stripe| u64::from(stripe.rows)).sum();
            let end = at + bytes.len() as u64;
            footer.segments.push(SegmentPlace { bytes: at..end, rows });
            at = end;
        }
        let bytes = footer.write();
        let footer_length = u32::try_from(bytes.len());
        let footer_length = footer_length.map_err(|_| Error::Unsupported("a footer past 4 GiB".into()))?;
        self.put(&bytes, at)?;
        self.file.sync_data()?;
        let generation = newest.map_or(0, |place| place.generation) + 1;
        let end = at + u64::from(footer_length);
        Ok(Publication(Place { generation, footer_offset: at, footer_length, end }))
    }

    /// Has what was published count for whoever opens the file.
    ///
    /// # Errors
    /// `Io`: then the file goes on saying what it said before.
    pub fn name(&self, publication: &Publication) -> Result<()> {
        let (at, bytes) = publication.0.write();
        self.put(&bytes, at)
    }

    /// Gives the room back of what nobody reads: all that lies before byte `limit` and before whatever the
    /// file says of itself. Returns the first byte that is kept. Other file systems than those of Linux that
    /// can keep it.
    ///
    /// # Errors
    /// `Io`, and where the file says nothing of itself that can be read: then all is kept.
    pub fn give_back(&self, limit: u64) -> Result<u64> {
        let said = ColumnFile::open(self.file.try_clone()?)?;
        let named = said.segments().iter().map(|segment| segment.bytes.start);
        let named = named.chain(said.stripes().iter().map(|stripe| stripe.bytes.start));
        let first = named.chain([said.place().footer_offset]).min().unwrap_or(0).min(limit);
        let kept = first - first % BLOCK;
        if kept > HEAD_BYTES {
            use rustix::fs::{FallocateFlags, fallocate};
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, hole, HEAD_BYTES, kept - HEAD_BYTES).map_err(io::Error::from)?;
        }
        Ok(kept)
    }

    /// The numbers of a stripe's columns: a server's stripes have all columns of their table, in its order.
    fn columns_of(&self, stripe: &StripePlace) -> Result<Arc<[u32]>> {
        let (start, footer) = (stripe.bytes.start, &stripe.footer);
        let mut bytes = Vec::new();
        self.file.read(start + footer.start..start + footer.end, &mut bytes)?;
        let reader = StripeReader::open(&bytes);
        let reader = reader.map_err(|error| super::broken(&format!("stripe at byte {start}"), &error))?;
        Ok((1..).take(reader.column_count()).collect())
    }
}

impl Ranges for OwnedFile {
    fn length(&self) -> Result<u64> {
        self.file.length()
    }

    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.file.read(range, out)
    }
}

/// What its head says of a file. An error of one that was taken away meanwhile is that there is none.
fn unless_taken_away<T>(file: &File, look: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    let found = head_of(file).and_then(|head| look(&head));
    if found.is_err() && file.metadata()?.nlink() == 0 {
        return Err(io::Error::from(io::ErrorKind::NotFound).into());
    }
    found
}

fn head_of(file: &File) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    file.read(0..HEAD_BYTES.min(file.length()?), &mut head)?;
    Ok(head)
}
