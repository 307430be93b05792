//! Text of hexadecimal digits as half as many bytes, and canonical uuid text as sixteen.
//!
//! Payload of `hex`: 0 = lower or 1 = upper case, the packed lengths (`lengths.rs`), the packed bytes.
//! Payload of `uuid_text`: the case, then sixteen bytes a row. Both keep equality, and among texts of this
//! form also order. So constants are packed and compared with packed bytes. The kernels run over all rows at
//! once (`kernels/hex.rs`).

use std::ops::Range;
use std::rc::Rc;

use vector::{Bitmap, ByteView};
use vector::{ByteViews, Error, PhysicalType, Result, Selection, Values, Vector};

use super::leaf::mapped;
use super::lengths::{self, Lengths, Spans};
use super::profile;
use super::views::views_of;
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, Node, NodeContext, Sample};
use crate::kernels::hex::{HexCase, pack, unpack};
use crate::options::{EncodeOptions, EncodingId};
use crate::single::Single;

const UUID_BYTES: usize = 16;
const UUID_TEXT: usize = 36;
/// The longest average length of hexadecimal text.
const MAX_AVERAGE: usize = 8 << 10;
/// Where the groups of a uuid's digits are in its text and among its 32 digits.
const GROUPS: [(usize, usize, usize); 5] = [(0, 0, 8), (9, 8, 4), (14, 12, 4), (19, 16, 4), (24, 20, 12)];
const DASHES: [usize; 4] = [8, 13, 18, 23];

const fn case_tag(case: HexCase) -> u8 {
    match case {
        HexCase::Lower => 0,
        HexCase::Upper => 1,
    }
}

fn read_case(reader: &mut Reader<'_>) -> Result<HexCase> {
    match reader.u8()? {
        0 => Ok(HexCase::Lower),
        1 => Ok(HexCase::Upper),
        other => Err(Error::corrupt(format!("hexadecimal case {other}"))),
    }
}

fn pack_hex(text: &[u8], case: HexCase) -> Option<Vec<u8>> {
    let mut packed = vec![0; text.len() / 2];
    pack(text, case, &mut packed).then_some(packed)
}

fn pack_uuid(text: &[u8], case: HexCase) -> Option<[u8; UUID_BYTES]> {
    if text.len() != UUID_TEXT || DASHES.iter().any(|&dash| text.get(dash) != Some(&b'-')) {
        return None;
    }
    let mut digits = [0u8; 32];
    for (from, to, len) in GROUPS {
        digits.get_mut(to..to + len)?.copy_from_slice(text.get(from..from + len)?);
    }
    let mut packed = [0; UUID_BYTES];
    pack(&digits, case, &mut packed).then_some(packed)
}

/// The case in which every value of the sample is of this form.
fn case_of(sample: &Sample<'_>, fits: impl Fn(&[u8], HexCase) -> bool) -> Option<HexCase> {
    let lead = profile::lead(sample)?;
    // Very long values are not keys.
    if lead.bytes < lead.values.len() * 4 || lead.bytes > lead.values.len() * MAX_AVERAGE {
        return None;
    }
    let all = |case| lead.values.iter().all(|value| fits(value, case));
    [HexCase::Lower, HexCase::Upper].into_iter().find(|&case| all(case))
}

/// The encoding of hexadecimal text.
pub(crate) struct Hex;

/// The encoding of uuid text.
pub(crate) struct UuidText;

impl Encoding for Hex {
    fn id(&self) -> EncodingId {
        EncodingId::Hex
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        case_of(sample, |value, case| pack_hex(value, case).is_some())?;
        let Values::Bytes(views) = &sample.rows.values else { return None };
        let first = views.get(0).len();
        let lengths = if views.iter().all(|value| value.len() == first) { 0.0 } else { views.len() as f64 };
        let bytes = views.total_bytes() as f64 / 2.0 + lengths;
        Some(Estimate { bytes: bytes * sample.factor() + 16.0, penalty: 1.0 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        _: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        Ok(match &column.values {
            Values::Bytes(views) => Some(Box::new(HexEncoder(views))),
            _ => None,
        })
    }
}

struct HexEncoder<'c>(&'c ByteViews);

impl ColumnEncoder for HexEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let total: usize = rows.clone().map(|row| self.0.get(row).len()).sum();
        if total > profile::MAX_CHUNK_BYTES {
            return Ok(false);
        }
        let mut text = Vec::with_capacity(total);
        let mut lengths = Vec::with_capacity(rows.len());
        for row in rows {
            let value = self.0.get(row);
            if !value.len().is_multiple_of(2) {
                return Ok(false);
            }
            text.extend_from_slice(value);
            lengths.push(i64::try_from(value.len() / 2).unwrap_or(i64::MAX));
        }
        let mut packed = vec![0; total / 2];
        let Some(case) =
            [HexCase::Lower, HexCase::Upper].into_iter().find(|&case| pack(&text, case, &mut packed))
        else {
            return Ok(false);
        };
        out.u8(EncodingId::Hex.tag());
        out.u8(case_tag(case));
        lengths::write(&lengths, out)?;
        out.bytes(&packed);
        Ok(true)
    }
}

impl Encoding for UuidText {
    fn id(&self) -> EncodingId {
        EncodingId::UuidText
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        case_of(sample, |value, case| pack_uuid(value, case).is_some())?;
        Some(Estimate { bytes: (sample.column.len() * UUID_BYTES) as f64 + 16.0, penalty: 1.0 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        _: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        Ok(match &column.values {
            Values::Bytes(views) => Some(Box::new(UuidEncoder(views))),
            _ => None,
        })
    }
}

struct UuidEncoder<'c>(&'c ByteViews);

impl ColumnEncoder for UuidEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let start = out.len();
        let case = [HexCase::Lower, HexCase::Upper]
            .into_iter()
            .find(|&case| rows.clone().all(|row| pack_uuid(self.0.get(row), case).is_some()));
        let Some(case) = case else { return Ok(false) };
        out.u8(EncodingId::UuidText.tag());
        out.u8(case_tag(case));
        for row in rows {
            let Some(packed) = pack_uuid(self.0.get(row), case) else {
                out.truncate(start);
                return Ok(false);
            };
            out.bytes(&packed);
        }
        Ok(true)
    }
}

/// Opens a hexadecimal node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<HexNode<'a>> {
    only_bytes(EncodingId::Hex, context)?;
    let case = read_case(reader)?;
    let lengths = Lengths::read(reader, context)?;
    Ok(HexNode { case, rows: context.rows, lengths, packed: reader.rest() })
}

/// Opens a node of uuid text.
pub(crate) fn open_uuid<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<UuidNode<'a>> {
    only_bytes(EncodingId::UuidText, context)?;
    let case = read_case(reader)?;
    let packed = reader.rest();
    if packed.len() != context.rows.saturating_mul(UUID_BYTES) {
        return Err(Error::corrupt(format!("{} bytes of {} uuids", packed.len(), context.rows)));
    }
    Ok(UuidNode { case, packed: packed.as_chunks::<UUID_BYTES>().0 })
}

/// `Corrupt` unless the values are byte strings of variable width.
pub(crate) fn only_bytes(id: EncodingId, context: &NodeContext<'_>) -> Result<()> {
    match context.physical() {
        PhysicalType::Bytes => Ok(()),
        physical => Err(crate::registry::unknown(id, physical)),
    }
}

/// The reading side.
pub(crate) struct HexNode<'a> {
    case: HexCase,
    rows: usize,
    lengths: Lengths<'a>,
    packed: &'a [u8],
}

impl HexNode<'_> {
    fn spans(&self) -> Result<Spans> {
        self.lengths.spans(self.rows, self.packed.len())
    }

    fn text(&self, packed: &[u8], spans: &Spans, rows: usize) -> Result<Values> {
        let offsets = spans
            .offsets(rows, 2)
            .ok_or_else(|| Error::corrupt(format!("{} bytes of packed text", packed.len())))?;
        let mut text = vec![0; packed.len() * 2];
        unpack(packed, self.case, &mut text);
        views_of(&offsets, text).map(Values::Bytes)
    }
}

impl Node for HexNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Hex.name());
        self.lengths.describe(out);
    }

    fn decode(&self) -> Result<Values> {
        self.text(self.packed, &self.spans()?, self.rows)
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        let spans = self.spans()?;
        let mut packed = Vec::new();
        let mut offsets = vec![0u32];
        for &row in rows {
            packed.extend_from_slice(self.packed.get(spans.get(row as usize)).unwrap_or(&[]));
            offsets.push(u32::try_from(packed.len()).unwrap_or(u32::MAX));
        }
        self.text(&packed, &Spans::Offsets(Rc::new(offsets)), rows.len())
    }

    fn single<'s>(&'s self, row: usize, room: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let packed = self.packed.get(self.spans()?.get(row)).unwrap_or(&[]);
        room.clear();
        room.resize(packed.len() * 2, 0);
        unpack(packed, self.case, room);
        Ok(Some(Single::Bytes(room)))
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        let Some(test) = mapped(leaf, true, |text| pack_hex(text, self.case)) else { return Ok(None) };
        let spans = self.spans()?;
        let mut mask = Bitmap::filled(self.rows, false);
        for row in selection.iter() {
            let row = row as usize;
            if self.packed.get(spans.get(row)).is_some_and(|value| test.passes(value)) {
                mask.set(row, true);
            }
        }
        Ok(Some(mask))
    }
}

/// The reading side.
pub(crate) struct UuidNode<'a> {
    case: HexCase,
    packed: &'a [[u8; UUID_BYTES]],
}

impl UuidNode<'_> {
    fn text<'p>(&self, packed: impl ExactSizeIterator<Item = &'p [u8; UUID_BYTES]>) -> Result<Values> {
        let rows = packed.len();
        let total = rows * UUID_TEXT;
        if u32::try_from(total).is_err() {
            return Err(Error::corrupt(format!("{rows} uuids in one chunk")));
        }
        let mut text = vec![b'-'; total];
        let mut views = Vec::with_capacity(rows);
        let mut digits = [0u8; 32];
        for ((offset, packed), text) in (0u32..).step_by(UUID_TEXT).zip(packed).zip(text.as_chunks_mut().0) {
            unpack(packed, self.case, &mut digits);
            place_groups(&digits, text);
            let prefix = *text.first_chunk::<4>().unwrap_or(&[0; 4]);
            views.push(ByteView::reference(UUID_TEXT as u32, prefix, 0, offset));
        }
        Ok(Values::Bytes(ByteViews::from_parts(views, vec![std::sync::Arc::new(text)])))
    }
}

/// Puts 32 digits between the dashes.
#[inline]
fn place_groups(digits: &[u8; 32], text: &mut [u8; UUID_TEXT]) {
    text[..8].copy_from_slice(&digits[..8]);
    text[9..13].copy_from_slice(&digits[8..12]);
    text[14..18].copy_from_slice(&digits[12..16]);
    text[19..23].copy_from_slice(&digits[16..20]);
    text[24..].copy_from_slice(&digits[20..]);
}

impl Node for UuidNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::UuidText.name());
    }

    fn decode(&self) -> Result<Values> {
        self.text(self.packed.iter())
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        let taken: Vec<&[u8; UUID_BYTES]> =
            rows.iter().filter_map(|&row| self.packed.get(row as usize)).collect();
        self.text(taken.into_iter())
    }

    fn single<'s>(&'s self, row: usize, room: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let Some(packed) = self.packed.get(row) else { return Ok(None) };
        let (mut digits, mut text) = ([0; 32], [b'-'; UUID_TEXT]);
        unpack(packed, self.case, &mut digits);
        place_groups(&digits, &mut text);
        room.clear();
        room.extend_from_slice(&text);
        Ok(Some(Single::Bytes(room)))
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        let Some(test) = mapped(leaf, true, |text| pack_uuid(text, self.case)) else { return Ok(None) };
        let mut mask = Bitmap::filled(self.packed.len(), false);
        for row in selection.iter() {
            let row = row as usize;
            if self.packed.get(row).is_some_and(|value| test.passes(value)) {
                mask.set(row, true);
            }
        }
        Ok(Some(mask))
    }
}
