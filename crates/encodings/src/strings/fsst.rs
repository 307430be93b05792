//! FSST text: frequent pieces of one to eight bytes become one-byte codes. Every value can still be read by
//! itself.
//!
//! After Boncz, Neumann, Leis, "FSST: Fast Random Access String Compression", PVLDB 2020. The crate `fsst`
//! trains the table and compresses. Expanding is ours (`kernels/fsst.rs`), and every chunk is expanded and
//! compared once before it is written.
//!
//! Symbol table: number of symbols (varint), their lengths (one byte each), their bytes end to end. It is the
//! payload of the shared section, or (a column of one chunk, dictionary entries) inside the node. Payload: 0 =
//! shared or 1 = own table, the own table (with its length before it), expanded bytes of all values (varint),
//! lengths of the codes (`lengths.rs`), codes.
//!
//! Invariant: a value's codes never run into the next value's.

use std::ops::Range;
use std::sync::Arc;

use vector::{Bitmap, ByteViews, CompareOp, Error, Result, Selection, Values, Vector};

use super::hex::only_bytes;
use super::leaf::BytesTest;
use super::lengths::{self, Lengths, Spans};
use super::profile;
use super::views::views_of;
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, Node, NodeContext, Sample};
use crate::kernels::fsst::{NO_PLACE, SymbolTable, append, append_run};
use crate::options::{EncodeOptions, EncodingId};
use crate::single::Single;

const SHARED_TABLE: u8 = 0;
const OWN_TABLE: u8 = 1;

/// Largest symbol.
const SYMBOL_BYTES: usize = 8;
/// Bytes looked at by the trainer.
const TRAINING_BYTES: usize = 64 << 10;
/// It must save at least one byte in this many.
const MIN_GAIN: usize = 8;

/// The encoding.
pub(crate) struct Fsst;

fn train(values: &[&[u8]]) -> fsst::Compressor {
    let mut rest = TRAINING_BYTES;
    let some: Vec<&[u8]> = values
        .iter()
        .map_while(|value| {
            let piece = value.get(..value.len().min(rest)).unwrap_or(value);
            let more = rest > 0;
            rest -= piece.len();
            more.then_some(piece)
        })
        .collect();
    fsst::Compressor::train(&some)
}

fn compress(compressor: &fsst::Compressor, values: &[&[u8]]) -> (Vec<u8>, Vec<i64>) {
    let (mut codes, mut ends) = (Vec::new(), Vec::new());
    compressor.compress_bulk_into::<4>(values, &mut codes, &mut ends);
    let mut start = 0;
    let lengths = ends
        .iter()
        .map(|&end| {
            let length = end - start;
            start = end;
            i64::try_from(length).unwrap_or(i64::MAX)
        })
        .collect();
    (codes, lengths)
}

fn write_table(compressor: &fsst::Compressor) -> Vec<u8> {
    let mut out = Writer::new();
    let lengths = compressor.symbol_lengths();
    out.count(lengths.len());
    out.bytes(lengths);
    for (symbol, &length) in compressor.symbol_table().iter().zip(lengths) {
        out.bytes(symbol.to_u64().to_le_bytes().get(..usize::from(length)).unwrap_or(&[]));
    }
    out.into_bytes()
}

fn read_table(mut reader: Reader<'_>) -> Result<SymbolTable> {
    let count = reader.count(255, "symbols")?;
    let lengths = reader.take(count)?;
    let mut symbols = Vec::with_capacity(count);
    for &length in lengths {
        symbols.push(reader.take(usize::from(length))?);
    }
    if reader.remaining() > 0 {
        return Err(Error::corrupt("bytes after the symbols"));
    }
    SymbolTable::new(symbols).ok_or_else(|| Error::corrupt("symbol of no or over eight bytes"))
}

impl Encoding for Fsst {
    fn id(&self) -> EncodingId {
        EncodingId::Fsst
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        if !profile::of(sample)?.is_free_text() {
            return None;
        }
        let lead = profile::lead(sample)?;
        let compressor = train(&lead.values);
        let (codes, _) = compress(&compressor, &lead.values);
        if codes.len() + lead.bytes / MIN_GAIN > lead.bytes {
            return None;
        }
        let bytes = (codes.len() + lead.values.len()) as f64 * lead.factor + 1500.0;
        Some(Estimate { bytes, penalty: 1.15 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        let Values::Bytes(views) = &column.values else { return Ok(None) };
        // Takes values from all over the column, with a few more bytes than the trainer looks at.
        let average = views.total_bytes() / views.len().max(1) + 1;
        let step = (views.len() / (TRAINING_BYTES / average + 1)).max(1);
        let values: Vec<&[u8]> = (0..views.len()).step_by(step).map(|row| views.get(row)).collect();
        let compressor = train(&values);
        let table = write_table(&compressor);
        let symbols = read_table(Reader::new(&table))?;
        let own = views.len() <= options.chunk_rows;
        let force = options.force == Some(EncodingId::Fsst);
        Ok(Some(Box::new(FsstEncoder { views, compressor, table, symbols, own, force, used: false })))
    }
}

struct FsstEncoder<'c> {
    views: &'c ByteViews,
    compressor: fsst::Compressor,
    table: Vec<u8>,
    symbols: SymbolTable,
    own: bool,
    force: bool,
    used: bool,
}

impl ColumnEncoder for FsstEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let values: Vec<&[u8]> = rows.map(|row| self.views.get(row)).collect();
        let total: usize = values.iter().map(|value| value.len()).sum();
        if total > profile::MAX_CHUNK_BYTES {
            return Ok(false);
        }
        let (codes, lengths) = compress(&self.compressor, &values);
        if codes.len() >= total && !self.force {
            return Ok(false);
        }
        if !self.expands_to(&codes, &lengths, &values, total) {
            return Ok(false);
        }
        out.u8(EncodingId::Fsst.tag());
        if self.own {
            out.u8(OWN_TABLE);
            out.child(&self.table);
        } else {
            out.u8(SHARED_TABLE);
            self.used = true;
        }
        out.count(total);
        lengths::write(&lengths, out)?;
        out.bytes(&codes);
        Ok(true)
    }

    fn shared(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.used.then(|| self.table.clone()))
    }
}

impl FsstEncoder<'_> {
    /// Whether the codes expand to the values again. The crate calls itself young, so only such codes are
    /// written.
    fn expands_to(&self, codes: &[u8], lengths: &[i64], values: &[&[u8]], total: usize) -> bool {
        let mut expanded = Vec::with_capacity(total + 256);
        let mut rest = codes;
        lengths.len() == values.len()
            && lengths.iter().zip(values).all(|(&length, value)| {
                let Some((own, after)) = rest.split_at_checked(usize::try_from(length).unwrap_or(usize::MAX))
                else {
                    return false;
                };
                rest = after;
                expanded.clear();
                expanded.reserve(own.len() * SYMBOL_BYTES + SYMBOL_BYTES);
                append(&self.symbols, own, &mut expanded, value.len()) && expanded == *value
            })
            && rest.is_empty()
    }
}

/// Opens a node of FSST text.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<FsstNode<'a>> {
    only_bytes(EncodingId::Fsst, context)?;
    let own = match reader.u8()? {
        SHARED_TABLE => None,
        OWN_TABLE => Some(Arc::new(read_table(reader.child()?)?)),
        kind => return Err(Error::corrupt(format!("symbol table kind {kind}"))),
    };
    let total = reader.count(u32::MAX as usize, "expanded bytes")?;
    let lengths = Lengths::read(reader, context)?;
    let codes = reader.rest();
    if total > codes.len().saturating_mul(SYMBOL_BYTES) {
        return Err(Error::corrupt(format!("{} codes claim to hold {total} bytes", codes.len())));
    }
    Ok(FsstNode { context: *context, own, total, lengths, codes })
}

/// The reading side.
pub(crate) struct FsstNode<'a> {
    context: NodeContext<'a>,
    own: Option<Arc<SymbolTable>>,
    total: usize,
    lengths: Lengths<'a>,
    codes: &'a [u8],
}

impl FsstNode<'_> {
    fn table(&self) -> Result<Arc<SymbolTable>> {
        match &self.own {
            Some(table) => Ok(Arc::clone(table)),
            None => self.context.shared.parsed(EncodingId::Fsst, read_table),
        }
    }

    fn spans(&self) -> Result<Spans> {
        self.lengths.spans(self.context.rows, self.codes.len())
    }

    /// Expands all values, some hundred at a time, so that the places of their codes stay in the nearest
    /// cache.
    fn expand_all(&self) -> Result<ByteViews> {
        const RUN_CODES: usize = 2048;
        let wrong = || Error::corrupt("FSST codes");
        let (table, spans) = (self.table()?, self.spans()?);
        let rows = self.context.rows;
        let mut data = Vec::new();
        data.try_reserve_exact(self.total + 128).map_err(|_| Error::OutOfMemory { bytes: self.total })?;
        let mut offsets = Vec::with_capacity(rows + 1);
        let mut places: Vec<u32> = Vec::new();
        let (mut row, mut start) = (0, 0);
        while row < rows {
            let (mut last, mut end) = (row, spans.get(row).end);
            while last + 1 < rows && end - start < RUN_CODES {
                last += 1;
                end = spans.get(last).end;
            }
            let codes = self.codes.get(start..end).ok_or_else(wrong)?;
            places.resize(places.len().max(codes.len()), 0);
            if !append_run(&table, codes, &mut data, self.total, &mut places) {
                return Err(wrong());
            }
            for row in row..=last {
                let code = spans.get(row).start - start;
                let place = match places.get(code).filter(|_| code < codes.len()) {
                    Some(&NO_PLACE) => return Err(wrong()),
                    Some(&place) => place,
                    // These are empty values at the end of a run.
                    None => u32::try_from(data.len()).map_err(|_| wrong())?,
                };
                offsets.push(place);
            }
            (row, start) = (last + 1, end);
        }
        if data.len() != self.total {
            return Err(wrong());
        }
        offsets.push(u32::try_from(data.len()).map_err(|_| wrong())?);
        ByteViews::from_offsets(&offsets, data).ok_or_else(wrong)
    }

    /// Expands the values at `rows`, which take `total` bytes if that is known.
    fn expand(&self, rows: impl ExactSizeIterator<Item = usize>, total: Option<usize>) -> Result<ByteViews> {
        let wrong = || Error::corrupt("FSST codes");
        let (table, spans) = (self.table()?, self.spans()?);
        let limit = total.unwrap_or(u32::MAX as usize);
        let mut data = Vec::with_capacity(total.unwrap_or(0) + 512);
        let mut offsets = Vec::with_capacity(rows.len() + 1);
        offsets.push(0);
        for row in rows {
            let codes = self.codes.get(spans.get(row)).ok_or_else(wrong)?;
            if total.is_none() {
                data.reserve(codes.len() * SYMBOL_BYTES + SYMBOL_BYTES);
            }
            if !append(&table, codes, &mut data, limit) {
                return Err(wrong());
            }
            offsets.push(u32::try_from(data.len()).map_err(|_| wrong())?);
        }
        if total.is_some_and(|total| total != data.len()) {
            return Err(wrong());
        }
        views_of(&offsets, data)
    }
}

impl Node for FsstNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Fsst.name());
        self.lengths.describe(out);
    }

    fn decode(&self) -> Result<Values> {
        self.expand_all().map(Values::Bytes)
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        self.expand(rows.iter().map(|&row| row as usize), None).map(Values::Bytes)
    }

    fn single<'s>(&'s self, row: usize, room: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let (table, codes) = (self.table()?, self.codes.get(self.spans()?.get(row)));
        room.clear();
        room.reserve(codes.map_or(0, <[u8]>::len) * SYMBOL_BYTES + SYMBOL_BYTES);
        match codes.is_some_and(|codes| append(&table, codes, room, u32::MAX as usize)) {
            true => Ok(Some(Single::Bytes(room))),
            false => Err(Error::corrupt("FSST codes")),
        }
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        let Some(test) = BytesTest::of(leaf) else { return Ok(None) };
        let (table, spans) = (self.table()?, self.spans()?);
        let mut mask = Bitmap::filled(self.context.rows, false);
        let mut value = Vec::new();
        for row in selection.iter() {
            let row = row as usize;
            let codes = self.codes.get(spans.get(row)).unwrap_or(&[]);
            // A text has at most two codes a byte, and at least one for eight bytes.
            if let BytesTest::Compare(CompareOp::Equal, constant) = &test
                && (codes.len() > constant.len() * 2 || codes.len() * SYMBOL_BYTES < constant.len())
            {
                continue;
            }
            value.clear();
            value.reserve(codes.len() * SYMBOL_BYTES + SYMBOL_BYTES);
            if !append(&table, codes, &mut value, u32::MAX as usize) {
                return Err(Error::corrupt("FSST codes"));
            }
            if test.passes(&value) {
                mask.set(row, true);
            }
        }
        Ok(Some(mask))
    }
}
