//! Dictionary: codes into the entries that all chunks of the column share (`shared.rs`). Payload: an integer
//! node of the codes.
//!
//! Encoders number entries in the order of first appearance. So periodic or sorted columns give codes that
//! take nearly nothing as delta or run-length. (Text in no such order is numbered in order of its bytes.)
//! This file reads codes of any type. Each type builds its entries itself, and [`CodeEncoder`] takes finished
//! codes.

mod numbers;

pub(crate) use numbers::NumberDictionary;

use std::ops::Range;
use std::sync::Arc;

use vector::{Bitmap, Error, Result, Selection, Values, Vector};

use crate::chooser;
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Leaf, Node, NodeContext};
use crate::filter::IntCondition;
use crate::integers::{self, IntNode};
use crate::options::{EncodeOptions, EncodingId};
use crate::single::Single;

/// If there are more entries than this for each row taken, single entries are read. Otherwise the whole
/// dictionary is decoded.
const SINGLE_ENTRIES: usize = 16;

/// The reading side.
pub(crate) struct DictionaryNode<'a> {
    context: NodeContext<'a>,
    codes: IntNode<'a>,
}

/// Opens a dictionary node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<DictionaryNode<'a>> {
    let codes = IntNode::open(reader, context.rows, context.deeper()?)?;
    Ok(DictionaryNode { context: *context, codes })
}

impl DictionaryNode<'_> {
    fn coded(&self, codes: Vec<u32>) -> Result<Values> {
        let dictionary = Arc::clone(self.context.shared.dictionary()?);
        let count = dictionary.entries.len();
        // One pass finds the largest code, instead of a test for each code. It vectorises.
        match codes.iter().copied().max() {
            Some(code) if code as usize >= count => {
                Err(Error::corrupt(format!("dictionary code {code} of {count}")))
            }
            _ => Ok(Values::Dictionary { codes, dictionary }),
        }
    }
}

/// The codes that passed as a range, if they or those that did not pass are neighbours.
fn code_range(passed: &Bitmap) -> Option<IntCondition> {
    let run = |wanted: bool| {
        let mut matching = (0..passed.len()).filter(|&code| passed.get(code) == wanted);
        let first = matching.next()?;
        let last = matching.next_back().unwrap_or(first);
        Some((first, last))
    };
    let count = passed.count_ones();
    let Some((first, last)) = run(true) else { return Some(IntCondition::Never) };
    if last - first + 1 == count {
        return Some(IntCondition::Range { low: first as i128, high: last as i128, outside: false });
    }
    let (first, last) = run(false)?;
    (last - first + 1 == passed.len() - count).then_some(IntCondition::Range {
        low: first as i128,
        high: last as i128,
        outside: true,
    })
}

impl Node for DictionaryNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Dictionary.name());
        out.push_str(" > ");
        self.codes.describe(out);
    }

    fn decode(&self) -> Result<Values> {
        if let Some(code) = self.codes.constant() {
            let code = u32::try_from(code).map_err(|_| Error::corrupt(format!("dictionary code {code}")))?;
            let value = self.context.shared.entries_at(&[code])?;
            return Ok(Values::Constant(Box::new(value), self.context.rows));
        }
        let mut codes = Vec::new();
        self.codes.decode_into(&mut codes)?;
        self.coded(codes)
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        let mut codes = Vec::new();
        self.codes.take_into(rows, &mut codes)?;
        let shared = self.context.shared;
        if shared.is_dictionary_decoded() || codes.len() * SINGLE_ENTRIES > shared.entry_count()? {
            return self.coded(codes);
        }
        Ok(shared.entries_at(&codes)?.values)
    }

    fn single<'s>(&'s self, row: usize, _: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let shared = self.context.shared;
        if !shared.is_dictionary_decoded() && !shared.note_single(SINGLE_ENTRIES)? {
            return Ok(None);
        }
        let (code, entries) = (self.codes.get(row)?, &shared.dictionary()?.entries);
        match usize::try_from(code) {
            Ok(entry) if entry < entries.len() => Ok(Some(Single::Of(entries, entry))),
            _ => Err(Error::corrupt(format!("dictionary code {code} of {}", entries.len()))),
        }
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        let Some(passed) = self.context.shared.passed(leaf)? else { return Ok(None) };
        if let Some(test) = code_range(&passed) {
            return self.codes.test(&test, selection).map(Some);
        }
        let table: Vec<u8> = passed.iter().map(u8::from).collect();
        let mut codes: Vec<u32> = Vec::new();
        self.codes.decode_into(&mut codes)?;
        let mut words = vec![0u64; codes.len().div_ceil(64)];
        for (word, codes) in words.iter_mut().zip(codes.chunks(64)) {
            for (bit, &code) in codes.iter().enumerate() {
                *word |= u64::from(table.get(code as usize).copied().unwrap_or(0)) << bit;
            }
        }
        Ok(Some(Bitmap::from_words(words, codes.len())))
    }
}

/// Encodes chunks from codes that were made for the whole column, and the entries into the shared section.
pub(crate) struct CodeEncoder<'c> {
    /// A code per row of the column.
    pub(crate) codes: Vec<u32>,
    /// The entries in order of their codes (flat, no NULLs).
    pub(crate) entries: Vector,
    /// How the column is encoded.
    pub(crate) options: EncodeOptions<'c>,
}

impl ColumnEncoder for CodeEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let Some(codes) = self.codes.get(rows) else { return Ok(false) };
        let codes: Vec<i64> = codes.iter().map(|&code| i64::from(code)).collect();
        out.u8(EncodingId::Dictionary.tag());
        integers::write_node(&codes, integers::CHILD_DEPTH, None, out);
        Ok(true)
    }

    fn shared(&mut self) -> Result<Option<Vec<u8>>> {
        let mut out = Writer::new();
        out.count(self.entries.len());
        chooser::write_alone(&self.entries, &self.options, &mut out)?;
        Ok(Some(out.into_bytes()))
    }
}
