//! A load of a column file: rows become stripes at its end, and count once the load is finished.
//!
//! The order of what is written is what makes a load whole: stripes, segment and footer; then all of that is
//! on the device; then the place in the head; then that is on the device. Who opens the file before has the
//! rows of earlier loads, who opens it after has these, too. One load at a time: others wait at the lock.

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::os::unix::fs::FileExt;
use std::path::Path;

use encodings::Codec;
use stripe::{StripeOptions, fit_chunk_rows, write_stripe};
use vector::{Vector, concat};

use super::ColumnFile;
use super::footer::{Column, Footer, SegmentPlace};
use super::head::{self, HEAD_BYTES, Owner, Place};
use super::segment::{self, StripePlace};
use crate::{Error, Result};

/// Bytes of values at which a stripe ends, however few rows it has.
const STRIPE_BYTES: usize = 256 << 20;
/// A file with so many segments gets them joined by the next load. Who opens it reads each.
pub(super) const MOST_SEGMENTS: usize = 256;

/// How rows are written.
#[derive(Debug, Clone, Copy)]
pub struct WriteOptions {
    /// Rows of a stripe, at most.
    pub stripe_rows: u32,
    /// Rows of a chunk, at most.
    pub chunk_rows: u32,
    /// What compresses blocks.
    pub codec: Codec,
    /// Its level.
    pub level: i32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { stripe_rows: 150_000, chunk_rows: 10_000, codec: Codec::Zstd, level: 3 }
    }
}

/// What a load has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// Rows.
    pub rows: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
}

/// A load.
#[derive(Debug)]
pub struct ColumnWriter {
    file: File,
    footer: Footer,
    /// How many loads were finished before.
    generation: u64,
    /// Where the next bytes go.
    at: u64,
    options: WriteOptions,
    /// Rows that wait for their stripe: for each column its parts.
    waiting: Vec<Vec<Vector>>,
    waiting_rows: usize,
    waiting_bytes: usize,
    stripes: Vec<StripePlace>,
}

impl ColumnWriter {
    /// Makes a new file of these columns, and begins its first load.
    ///
    /// # Errors
    /// `Io` where there is a file of that name, or none can be made.
    pub fn create(path: &Path, columns: Vec<Column>, options: WriteOptions) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.lock()?;
        file.write_all_at(&head::new(identity()), 0)?;
        sync_name(path)?;
        let footer = Footer { columns, ..Footer::default() };
        Ok(Self::begin(file, footer, 0, HEAD_BYTES, options))
    }

    /// Begins one more load of a file. Waits for one that is under way.
    ///
    /// # Errors
    /// As `ColumnFile::open`.
    pub fn append(path: &Path, options: WriteOptions) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        file.lock()?;
        let open = ColumnFile::open(file.try_clone()?)?;
        if let Some(at) = open.damaged_place() {
            return Err(Error::Malformed(format!(
                "the place at byte {at} of the head is damaged. The file can be read as of load {}, and copied. \
                 Another load would write over what may have come after it",
                open.loads()
            )));
        }
        if let Some(Owner { database, relation, .. }) = open.owner() {
            return Err(Error::Unsupported(format!(
                "it belongs to a foreign table of PostgreSQL (OID {relation}, database {database}), which alone \
                 loads it. Load it there, or convert it to a file of its own"
            )));
        }
        let Place { generation, end, .. } = open.place();
        // What lies there is of a load that was not finished.
        file.set_len(end)?;
        Ok(Self::begin(file, open.into_footer(), generation, end, options))
    }

    fn begin(file: File, footer: Footer, generation: u64, at: u64, options: WriteOptions) -> Self {
        let waiting = footer.columns.iter().map(|_| Vec::new()).collect();
        Self {
            file,
            footer,
            generation,
            at,
            options,
            waiting,
            waiting_rows: 0,
            waiting_bytes: 0,
            stripes: Vec::new(),
        }
    }

    /// The columns that rows have to have.
    pub fn columns(&self) -> &[Column] {
        &self.footer.columns
    }

    /// Adds rows: a vector for each column, of its type, all of one length.
    ///
    /// # Errors
    /// `Io` where the file cannot be written; `Unsupported` for values that are too large for the format.
    pub fn write(&mut self, mut columns: Vec<Vector>) -> Result<()> {
        let mut rows = columns.first().map_or(0, Vector::len);
        let fits = columns.len() == self.waiting.len()
            && columns
                .iter()
                .zip(&self.footer.columns)
                .all(|(vector, column)| vector.logical == column.logical && vector.len() == rows);
        if !fits {
            return Err(Error::Unsupported("rows have other columns than the file".into()));
        }
        // Parts of them fill stripes; what is left waits as it came.
        let most = self.options.stripe_rows.max(1) as usize;
        while self.waiting_rows + rows >= most {
            let taken = most - self.waiting_rows;
            rows -= taken;
            let rest = columns.iter().map(|column| column.slice(taken, rows)).collect();
            let full = columns.iter().map(|column| column.slice(0, taken)).collect();
            self.wait(full, taken);
            self.end_stripe()?;
            columns = rest;
        }
        if rows > 0 {
            self.wait(columns, rows);
        }
        if self.waiting_bytes > STRIPE_BYTES { self.end_stripe() } else { Ok(()) }
    }

    fn wait(&mut self, columns: Vec<Vector>, rows: usize) {
        self.waiting_rows += rows;
        self.waiting_bytes += columns.iter().map(Vector::bytes).sum::<usize>();
        self.waiting.iter_mut().zip(columns).for_each(|(parts, column)| parts.push(column));
    }

    fn end_stripe(&mut self) -> Result<()> {
        if self.waiting_rows == 0 {
            return Ok(());
        }
        let wrong = |error: vector::Error| Error::Unsupported(error.to_string());
        let parts = self.waiting.iter_mut().map(std::mem::take);
        let columns = parts.zip(&self.footer.columns).map(|(parts, column)| concat(column.logical, parts));
        let columns: Vec<Vector> = columns.collect::<vector::Result<_>>().map_err(wrong)?;
        let rows = u32::try_from(std::mem::take(&mut self.waiting_rows)).unwrap_or(u32::MAX);
        self.waiting_bytes = 0;
        let options = StripeOptions {
            chunk_rows: fit_chunk_rows(&columns, self.options.chunk_rows),
            codec: self.options.codec,
            level: self.options.level,
            ..StripeOptions::default()
        };
        let written = write_stripe(rows, &columns, &options).map_err(wrong)?;
        let start = self.add(&written.bytes)?;
        self.stripes.push(StripePlace {
            bytes: start..self.at,
            footer: written.footer_offset..written.footer_offset + u64::from(written.footer_length),
            rows,
            summary: written.summary.into(),
            columns: self.footer.columns.iter().map(|column| column.number).collect(),
        });
        Ok(())
    }

    /// Puts bytes at the end. Returns where they begin.
    fn add(&mut self, bytes: &[u8]) -> Result<u64> {
        let start = self.at;
        self.file.write_all_at(bytes, start)?;
        self.at += bytes.len() as u64;
        Ok(start)
    }

    fn add_segment(&mut self, stripes: &[StripePlace]) -> Result<()> {
        let Some(first) = stripes.first() else { return Ok(()) };
        let start = self.add(&segment::write(&first.columns, stripes))?;
        let rows = stripes.iter().map(|stripe| u64::from(stripe.rows)).sum();
        self.footer.segments.push(SegmentPlace { bytes: start..self.at, rows });
        Ok(())
    }

    /// Writes one segment in the place of many, or a few where stripes have different columns.
    fn join_segments(&mut self) -> Result<()> {
        let mut all = Vec::new();
        for segment in std::mem::take(&mut self.footer.segments) {
            let mut bytes = Vec::new();
            super::Ranges::read(&self.file, segment.bytes, &mut bytes)?;
            all.extend(segment::read(&bytes, self.at)?);
        }
        all.chunk_by(|one, other| one.columns == other.columns).try_for_each(|alike| self.add_segment(alike))
    }

    /// Ends the load: from here on its rows count.
    ///
    /// # Errors
    /// `Io` where the file cannot be written. Then the load has not happened, unless the error came from the
    /// very last step; who opens the file sees whether it has.
    pub fn finish(mut self) -> Result<Loaded> {
        self.end_stripe()?;
        let stripes = std::mem::take(&mut self.stripes);
        self.add_segment(&stripes)?;
        if self.footer.segments.len() > MOST_SEGMENTS {
            self.join_segments()?;
        }
        let footer = self.footer.write();
        let footer_length = u32::try_from(footer.len());
        let footer_length = footer_length.map_err(|_| Error::Unsupported("a footer past 4 GiB".into()))?;
        let footer_offset = self.add(&footer)?;
        self.file.sync_data()?;
        let place = Place { generation: self.generation + 1, footer_offset, footer_length, end: self.at };
        let (at, bytes) = place.write();
        self.file.write_all_at(&bytes, at)?;
        self.file.sync_data()?;
        let rows = stripes.iter().map(|stripe| u64::from(stripe.rows)).sum();
        Ok(Loaded { rows, bytes: self.at })
    }
}

/// Has the name of a new file on the device.
fn sync_name(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Sixteen bytes that no other file has.
pub(super) fn identity() -> [u8; 16] {
    // The system's randomness, as the hash maps of the standard library have it.
    let [one, other] = [0u64, 1].map(|number| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(number);
        hasher.finish().to_le_bytes()
    });
    let mut identity = [0; 16];
    identity.iter_mut().zip(one.into_iter().chain(other)).for_each(|(to, from)| *to = from);
    identity
}
