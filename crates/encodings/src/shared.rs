//! What the chunks of one column share within a stripe: a dictionary, an FSST symbol table, templates.
//!
//! If no chunk shares anything, the section has no bytes. Otherwise it has version (1), the tag of the
//! encoding that owns the section, and its payload as a codec frame (`codec.rs`). The frame is restored when
//! the section is opened. A dictionary's payload is the number of entries (varint) and their values node.
//!
//! Parsing is lazy and happens once: a scan that reads no dictionary chunk never decodes the dictionary.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use vector::{Bitmap, Dictionary, Error, LogicalType, Result, Values, Vector};

use crate::codec;
use crate::cursor::{Reader, Writer};
use crate::encoding::{Leaf, MAX_DEPTH, NodeContext};
use crate::filter::test_values;
use crate::filter_cache::FilterCache;
use crate::options::{BlockCodecs, Codec, EncodeOptions, EncodingId};
use crate::registry::open_values;
use crate::strings::template;

const VERSION: u8 = 1;

/// The shared section of one column of one stripe, opened for reading.
pub struct SharedColumn {
    logical: LogicalType,
    owner: Option<EncodingId>,
    codec: Codec,
    payload: Vec<u8>,
    id: u64,
    dictionary: OnceLock<Arc<Dictionary>>,
    parsed: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// Conditions that were tested on the entries.
    tested: Mutex<FilterCache>,
    /// Values that were asked for by themselves while the dictionary was not decoded.
    singles: AtomicUsize,
}

impl fmt::Debug for SharedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedColumn")
            .field("logical", &self.logical)
            .field("owner", &self.owner)
            .field("bytes", &self.payload.len())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl SharedColumn {
    /// Opens the shared section of a column and copies its bytes. Its content is checked when it is first
    /// used.
    pub fn open(logical: LogicalType, bytes: &[u8], codecs: &dyn BlockCodecs) -> Result<Arc<Self>> {
        let mut reader = Reader::new(bytes);
        let (owner, codec, payload) = if bytes.is_empty() {
            (None, Codec::None, Vec::new())
        } else {
            let version = reader.u8()?;
            if version != VERSION {
                return Err(Error::Unsupported(format!("shared section version {version}")));
            }
            let owner = EncodingId::from_tag(reader.u8()?)?;
            let codec = Codec::from_tag(reader.clone().u8()?)?;
            (Some(owner), codec, codec::read_frame(&mut reader, codecs)?.into_owned())
        };
        Ok(Arc::new(Self {
            logical,
            owner,
            codec,
            payload,
            id: Dictionary::next_id(),
            dictionary: OnceLock::new(),
            parsed: OnceLock::new(),
            tested: Mutex::default(),
            singles: AtomicUsize::new(0),
        }))
    }

    /// A column that shares nothing, for nodes that stand alone (dictionary entries, children).
    pub fn none(logical: LogicalType) -> Arc<Self> {
        Arc::new(Self {
            logical,
            owner: None,
            codec: Codec::None,
            payload: Vec::new(),
            id: 0,
            dictionary: OnceLock::new(),
            parsed: OnceLock::new(),
            tested: Mutex::default(),
            singles: AtomicUsize::new(0),
        })
    }

    /// The section's bytes for this owner.
    pub(crate) fn write(owner: EncodingId, payload: &[u8], options: &EncodeOptions<'_>) -> Result<Vec<u8>> {
        let mut out = Writer::new();
        out.u8(VERSION);
        out.u8(owner.tag());
        codec::write_frame(payload, options, &mut out)?;
        Ok(out.into_bytes())
    }

    /// A number that is unique in this process among all shared sections ever opened. 0 for a section that
    /// shares nothing.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// What compressed the section.
    pub const fn codec(&self) -> Codec {
        self.codec
    }

    /// Memory held, in bytes (an estimate for caches).
    pub fn memory(&self) -> usize {
        // A decoded dictionary is somewhat larger than its bytes. Three times as large is a safe guess for
        // views.
        self.payload.len() * if self.dictionary.get().is_some() { 4 } else { 1 }
            + 256
            + self.tested().memory()
    }

    /// The payload, if the section belongs to this encoding. `Corrupt` otherwise.
    pub(crate) fn payload(&self, owner: EncodingId) -> Result<Reader<'_>> {
        if self.owner == Some(owner) {
            Ok(Reader::new(&self.payload))
        } else {
            Err(Error::corrupt(format!("{} chunk without its shared section", owner.name())))
        }
    }

    /// The parsed form of the section, made by `parse` on first use. It has one type, because one encoding
    /// owns the section.
    #[allow(dead_code)]
    pub(crate) fn parsed<T: Any + Send + Sync>(
        &self,
        owner: EncodingId,
        parse: impl FnOnce(Reader<'_>) -> Result<T>,
    ) -> Result<Arc<T>> {
        if self.parsed.get().is_none() {
            let value: Arc<dyn Any + Send + Sync> = Arc::new(parse(self.payload(owner)?)?);
            // Another thread may have been first. Then its value is used, and ours is dropped.
            let _ = self.parsed.set(value);
        }
        self.parsed
            .get()
            .and_then(|value| Arc::clone(value).downcast::<T>().ok())
            .ok_or_else(|| Error::corrupt("shared section of another encoding"))
    }

    /// The paths of a column of shredded documents, in the order of their numbers. Empty for any other
    /// column.
    pub fn paths(&self, codecs: &dyn BlockCodecs) -> Result<Vec<template::Path>> {
        if self.owner != Some(EncodingId::Template) {
            return Ok(Vec::new());
        }
        let parsed = self.parsed(EncodingId::Template, |reader| template::parse(reader, codecs))?;
        template::paths(&parsed)
    }

    /// The dictionary, decoded on first use.
    pub fn dictionary(&self) -> Result<&Arc<Dictionary>> {
        if let Some(dictionary) = self.dictionary.get() {
            return Ok(dictionary);
        }
        let entries = self.with_entries(|node, _| Ok(Vector::new(self.logical, node.decode()?).flatten()))?;
        Ok(self.dictionary.get_or_init(|| Arc::new(Dictionary { id: self.id, entries })))
    }

    /// One bit for each entry of the dictionary: does it pass? Each condition is tested once for all chunks.
    /// `None` if the entries cannot be compared here (decimals in the side lane).
    pub(crate) fn passed(&self, leaf: &Leaf<'_>) -> Result<Option<Arc<Bitmap>>> {
        if let Some(bits) = self.tested().find(*leaf) {
            return Ok(Some(bits));
        }
        let entries = &self.dictionary()?.entries;
        if matches!(&entries.values, Values::Numeric(numeric) if !numeric.side.is_empty()) {
            return Ok(None);
        }
        let all: Vec<u32> = (0..).take(entries.len()).collect();
        let bits = Arc::new(test_values(&entries.values, leaf, &all)?);
        self.tested().remember(*leaf, Arc::clone(&bits));
        Ok(Some(bits))
    }

    fn tested(&self) -> MutexGuard<'_, FilterCache> {
        // A thread that panicked while it held the lock has left only whole conditions.
        self.tested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries at `codes`. The dictionary is not decoded if its encoding allows that.
    pub(crate) fn entries_at(&self, codes: &[u32]) -> Result<Vector> {
        if let Some(dictionary) = self.dictionary.get() {
            check_codes(codes, dictionary.entries.len())?;
            return Ok(dictionary.entries.take(codes));
        }
        self.with_entries(|node, count| {
            check_codes(codes, count)?;
            let mut sorted = codes.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            let entries = Vector::new(self.logical, node.take(&sorted)?).flatten();
            let places: Vec<u32> = codes
                .iter()
                .map(|code| u32::try_from(sorted.partition_point(|c| c < code)).unwrap_or(u32::MAX))
                .collect();
            Ok(entries.take(&places))
        })
    }

    /// Number of dictionary entries, without decoding them.
    pub(crate) fn entry_count(&self) -> Result<usize> {
        match self.dictionary.get() {
            Some(dictionary) => Ok(dictionary.entries.len()),
            None => self.payload(EncodingId::Dictionary)?.count(MAX_ENTRIES, "dictionary entries"),
        }
    }

    /// Notes that one value was asked for whose entry would have to be read by itself. True if decoding the
    /// whole dictionary pays: there are at most `entries` entries for each such value.
    pub(crate) fn note_single(&self, entries: usize) -> Result<bool> {
        let taken = self.singles.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        Ok(taken.saturating_mul(entries) >= self.entry_count()?)
    }

    /// True once the whole dictionary is in memory.
    pub(crate) fn is_dictionary_decoded(&self) -> bool {
        self.dictionary.get().is_some()
    }

    fn with_entries<T>(
        &self,
        read: impl FnOnce(&dyn crate::encoding::Node, usize) -> Result<T>,
    ) -> Result<T> {
        let mut reader = self.payload(EncodingId::Dictionary)?;
        let count = reader.count(MAX_ENTRIES, "dictionary entries")?;
        let shared = Self::none(self.logical);
        let codecs = crate::options::NoPglz;
        let context = NodeContext {
            logical: self.logical,
            rows: count,
            shared: &shared,
            codecs: &codecs,
            depth: MAX_DEPTH,
        };
        let node = open_values(&mut reader, &context)?;
        read(&*node, count)
    }
}

/// The most entries a stored dictionary may have.
pub(crate) const MAX_ENTRIES: usize = 1 << 20;

fn check_codes(codes: &[u32], count: usize) -> Result<()> {
    match codes.iter().find(|&&code| code as usize >= count) {
        Some(code) => Err(Error::corrupt(format!("dictionary code {code} of {count}"))),
        None => Ok(()),
    }
}
