//! The dictionary of byte strings: which value gets which code. Reading is the same for all types
//! (`crate::dictionary`).
//!
//! A column of a stripe has one dictionary. The entries are byte strings, too, so they are encoded themselves
//! and can be read one by one. Limits keep a dictionary small enough to be decoded whole for a scan, and to
//! be cached.
//!
//! Entries are in the order of first appearance, if that makes codes that repeat or count. Else they are in
//! order of their bytes. Then a condition such as `day >= '2024-01-01'` is a range of codes.

use vector::{ByteViews, Result, Values, Vector};

use super::intern::{Interned, Limits, intern};
use super::profile;
use crate::dictionary::CodeEncoder;
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Sample};
use crate::options::{EncodeOptions, EncodingId};

/// Most entries of one dictionary and most bytes of all of them.
const LIMITS: Limits = Limits { entries: 1 << 17, bytes: 16 << 20, share: 0.6 };

/// Limits when the dictionary is forced: what readers accept.
const FORCED: Limits = Limits { entries: 1 << 20, bytes: 1 << 30, share: 1.0 };

/// The encoding.
pub(crate) struct StringDictionary;

impl Encoding for StringDictionary {
    fn id(&self) -> EncodingId {
        EncodingId::Dictionary
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        let rows = sample.column.len();
        let (distinct, length) = match &sample.column.values {
            Values::Bytes(views) => {
                let length = match profile::of(sample) {
                    Some(profile) => profile.length,
                    None => 0.0,
                };
                (profile::distinct(views.len(), |row| views.get(row)), length)
            }
            Values::Fixed(fixed) => {
                (profile::distinct(fixed.len(), |row| fixed.get(row)), fixed.width as f64)
            }
            _ => return None,
        };
        if distinct > rows as f64 * LIMITS.share || distinct > LIMITS.entries as f64 {
            return None;
        }
        // Entries shrink somewhat by encodings of their own. Codes that repeat or count shrink more than
        // this, but that is not known yet.
        let bits = distinct.max(1.0).log2().ceil();
        let bytes = distinct * (length * 0.7 + 1.0) + rows as f64 * bits / 8.0 + 16.0;
        Some(Estimate { bytes, penalty: 1.0 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        let limits = if options.force == Some(EncodingId::Dictionary) { &FORCED } else { &LIMITS };
        let interned = match &column.values {
            Values::Bytes(views) => intern(views.len(), |row| views.get(row), limits),
            Values::Fixed(fixed) => intern(fixed.len(), |row| fixed.get(row), limits),
            _ => None,
        };
        let Some(interned) = interned else { return Ok(None) };
        let entries = column.take(&interned.first_rows);
        let Interned { mut codes, .. } = interned;
        if let Values::Bytes(views) = &entries.values
            && !are_orderly(&codes)
        {
            let places = by_bytes(views);
            codes.iter_mut().for_each(|code| *code = places.get(*code as usize).copied().unwrap_or(*code));
            let mut sorted = vec![0; places.len()];
            for (&place, code) in places.iter().zip(0..) {
                sorted.get_mut(place as usize).into_iter().for_each(|own| *own = code);
            }
            return Ok(Some(Box::new(CodeEncoder {
                codes,
                entries: entries.take(&sorted),
                options: *options,
            })));
        }
        Ok(Some(Box::new(CodeEncoder { codes, entries, options: *options })))
    }
}

/// Whether most codes repeat the one before or count on: in the order of first appearance they take little.
fn are_orderly(codes: &[u32]) -> bool {
    let orderly = codes.windows(2).filter(|pair| match pair {
        [before, code] => *code == *before || *code == before.wrapping_add(1),
        _ => false,
    });
    orderly.count() * 2 >= codes.len()
}

/// For each entry its place in the order of bytes.
fn by_bytes(entries: &ByteViews) -> Vec<u32> {
    let mut order: Vec<u32> = (0u32..).take(entries.len()).collect();
    order.sort_unstable_by(|&a, &b| entries.get(a as usize).cmp(entries.get(b as usize)));
    let mut places = vec![0; order.len()];
    for (&entry, place) in order.iter().zip(0..) {
        places.get_mut(entry as usize).into_iter().for_each(|own| *own = place);
    }
    places
}
