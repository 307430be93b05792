//! Dictionary: codes into the entries that all chunks of the column share (`shared.rs`). Payload: an integer node of the codes.
//!
//! Encoders number entries in the order of first appearance, so that periodic or sorted columns give codes that delta and
//! run-length make nearly free. This file reads codes of any type; who builds the entries is the type's own business
//! ([`CodeEncoder`] takes finished codes).

mod numbers;

pub(crate) use numbers::NumberDictionary;

use std::ops::Range;
use std::sync::Arc;

use vector::{Bitmap, Error, Result, Selection, Values, Vector};

use crate::chooser;
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Leaf, Node, NodeContext};
use crate::filter::{IntTest, test_values};
use crate::integers::{self, IntNode};
use crate::options::{EncodeOptions, EncodingId};

/// Entries per row taken below which reading single entries beats decoding the whole dictionary.
const SINGLE_ENTRIES: usize = 16;

struct DictionaryNode<'a> {
    context: NodeContext<'a>,
    codes: IntNode<'a>,
}

/// Opens a dictionary node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<Box<dyn Node + 'a>> {
    let codes = IntNode::open(reader, context.rows, context.deeper()?)?;
    Ok(Box::new(DictionaryNode { context: *context, codes }))
}

impl DictionaryNode<'_> {
    fn coded(&self, codes: Vec<u32>) -> Result<Values> {
        let dictionary = Arc::clone(self.context.shared.dictionary()?);
        let count = dictionary.entries.len();
        // One pass for the largest code instead of a test per code: it vectorises.
        match codes.iter().copied().max() {
            Some(code) if code as usize >= count => {
                Err(Error::corrupt(format!("dictionary code {code} of {count}")))
            }
            _ => Ok(Values::Dictionary { codes, dictionary }),
        }
    }
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

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        let dictionary = self.context.shared.dictionary()?;
        if let Values::Numeric(numeric) = &dictionary.entries.values
            && !numeric.side.is_empty()
        {
            return Ok(None);
        }
        let all: Vec<u32> = (0..).take(dictionary.entries.len()).collect();
        let passed = test_values(&dictionary.entries.values, leaf, &all)?;
        let count = passed.count_ones();
        let single = |bits: &mut dyn Iterator<Item = usize>, outside| match bits.next() {
            Some(code) => IntTest::Range { low: code as i128, high: code as i128, outside },
            None => IntTest::Never,
        };
        let test = match (count, passed.len() - count) {
            (0, _) => IntTest::Never,
            (_, 0) => IntTest::ALWAYS,
            (1, _) => single(&mut passed.ones(), false),
            (_, 1) => single(&mut (0..passed.len()).filter(|&code| !passed.get(code)), true),
            _ => {
                let mut codes: Vec<u32> = Vec::new();
                self.codes.decode_into(&mut codes)?;
                return Ok(Some(codes.iter().map(|&code| passed.get(code as usize)).collect()));
            }
        };
        self.codes.test(&test, selection).map(Some)
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
