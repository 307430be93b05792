//! Text that is a common prefix and a decimal number, as integers: '/page/4711', 'Customer#000000001',
//! '20240131'.
//!
//! The payload:
//! - the prefix (with its length before it)
//! - the number of digits to which every number is padded (varint, 0 = no padding)
//! - an integer node of the numbers (with its length before it)
//!
//! Unpadded numbers have no leading zero, except '0' itself, so each number has one text. The integers are
//! then encoded as integers: keys that count take nearly nothing.
//!
//! Invariant: at most 18 digits, so that every number fits 64 bits.

use std::ops::Range;

use vector::{Bitmap, ByteView, ByteViews, Error, INLINE_BYTES, Result, Selection, Values, Vector};

use super::hex::only_bytes;
use super::leaf::{Mapped, mapped};
use super::profile;
use super::views::view;
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, Node, NodeContext, Sample};
use crate::integers::{self, IntNode};
use crate::options::{EncodeOptions, EncodingId};
use crate::single::Single;

/// Most digits of a number.
const MAX_DIGITS: usize = 18;
/// Longest prefix.
const MAX_PREFIX: usize = 64;

/// What all texts of a chunk have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form<'p> {
    prefix: &'p [u8],
    /// Digits padded to; 0 = none.
    width: usize,
}

impl<'p> Form<'p> {
    /// The form of a single text: all its trailing digits are the number.
    fn of(text: &'p [u8]) -> Option<Self> {
        let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count().min(MAX_DIGITS);
        let (prefix, number) = text.split_at_checked(text.len() - digits)?;
        let padded = number.len() > 1 && number.first() == Some(&b'0');
        (digits > 0 && prefix.len() <= MAX_PREFIX)
            .then_some(Self { prefix, width: if padded { digits } else { 0 } })
    }

    /// One form for all texts, if there is one.
    fn common(texts: impl Iterator<Item = &'p [u8]> + Clone) -> Option<Self> {
        // The shortest prefix is taken. Digits before the number that all texts share must not be the prefix
        // of only some.
        let mut form: Option<Self> = None;
        for text in texts.clone() {
            let own = Self::of(text)?;
            form = Some(match form {
                None => own,
                Some(form) => Self {
                    prefix: if own.prefix.len() < form.prefix.len() { own.prefix } else { form.prefix },
                    width: form.width.max(own.width),
                },
            });
        }
        let form = form?;
        texts.clone().all(|text| form.parse(text).is_some()).then_some(form)
    }

    /// The number in a text of this form.
    #[inline]
    fn parse(&self, text: &[u8]) -> Option<i64> {
        let number = text.strip_prefix(self.prefix)?;
        let fits = match self.width {
            0 => {
                (1..=MAX_DIGITS).contains(&number.len())
                    && (number.len() == 1 || number.first() != Some(&b'0'))
            }
            width => number.len() == width,
        };
        if !fits {
            return None;
        }
        let mut value = 0i64;
        for byte in number {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + i64::from(digit);
        }
        Some(value)
    }
}

/// The encoding.
pub(crate) struct Digits;

impl Encoding for Digits {
    fn id(&self) -> EncodingId {
        EncodingId::Digits
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        let Values::Bytes(views) = &sample.rows.values else { return None };
        // Values that repeat are better in a dictionary, because filters and groupings touch each entry once.
        let profile = profile::of(sample)?;
        if profile.distinct * 8.0 < profile.rows as f64 || profile.length > (MAX_PREFIX + MAX_DIGITS) as f64 {
            return None;
        }
        let form = Form::common((0..views.len()).map(|row| views.get(row)))?;
        let numbers: Vec<i64> = views.iter().filter_map(|text| form.parse(text)).collect();
        let mut child = Writer::new();
        integers::write_node(&numbers, integers::CHILD_DEPTH, None, &mut child);
        let bytes = child.len() as f64 * sample.factor();
        // Slower to decode than codes or bytes, and no dictionary to group by.
        Some(Estimate { bytes: bytes + 32.0, penalty: 1.5 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        _: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        let Values::Bytes(views) = &column.values else { return Ok(None) };
        Ok(Some(Box::new(DigitsEncoder(views))))
    }
}

struct DigitsEncoder<'c>(&'c ByteViews);

impl ColumnEncoder for DigitsEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let Some(form) = Form::common(rows.clone().map(|row| self.0.get(row))) else { return Ok(false) };
        let numbers: Vec<i64> = rows.filter_map(|row| form.parse(self.0.get(row))).collect();
        out.u8(EncodingId::Digits.tag());
        out.child(form.prefix);
        out.count(form.width);
        integers::write_child(&numbers, integers::CHILD_DEPTH, out);
        Ok(true)
    }
}

/// Opens a node of numbers.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<DigitsNode<'a>> {
    only_bytes(EncodingId::Digits, context)?;
    let prefix = reader.child()?.rest();
    if prefix.len() > MAX_PREFIX {
        return Err(Error::corrupt(format!("prefix of {} bytes", prefix.len())));
    }
    let width = reader.count(MAX_DIGITS, "digits")?;
    let numbers = IntNode::open(&mut reader.child()?, context.rows, context.deeper()?)?;
    Ok(DigitsNode { form: Form { prefix, width }, rows: context.rows, numbers })
}

/// The reading side.
pub(crate) struct DigitsNode<'a> {
    form: Form<'a>,
    rows: usize,
    numbers: IntNode<'a>,
}

impl DigitsNode<'_> {
    fn text(&self, numbers: &[i64]) -> Result<Values> {
        let Form { prefix, width } = self.form;
        let wrong = |number: i64| Error::corrupt(format!("number {number} in text"));
        let head = prefix.len();
        let short_prefix = (head <= SHORT).then(|| low_bytes(prefix));
        let mut views = Vec::with_capacity(numbers.len());
        let mut data = Vec::new();
        for &number in numbers {
            let offset = u32::try_from(data.len()).map_err(|_| Error::corrupt("numbers of over 4 GiB"))?;
            // Prefix and digits are each put into one register if they fit. Most do.
            if let (Some(prefix), Some((digits, len))) = (short_prefix, short_number(number, width)) {
                let start = prefix | (digits << (8 * head));
                let total = head as u32 + len;
                views.push(if total as usize <= INLINE_BYTES {
                    ByteView::inline_bits(total, start)
                } else {
                    data.extend_from_slice(&prefix.to_le_bytes());
                    data.truncate(offset as usize + head);
                    data.extend_from_slice(&digits.to_le_bytes());
                    data.truncate(offset as usize + total as usize);
                    let [a, b, c, d, ..] = start.to_le_bytes();
                    ByteView::reference(total, [a, b, c, d], 0, offset)
                });
                continue;
            }
            data.extend_from_slice(prefix);
            append_number(number, width, &mut data).ok_or_else(|| wrong(number))?;
            let text = data.get(offset as usize..).unwrap_or(&[]);
            views.extend(view(text, offset));
            if text.len() <= INLINE_BYTES {
                data.truncate(offset as usize);
            }
        }
        Ok(Values::Bytes(ByteViews::from_parts(views, vec![std::sync::Arc::new(data)])))
    }
}

/// The longest prefix and number that are put together in a register, so that a shift by the prefix stays
/// inside it.
const SHORT: usize = 15;

/// Up to sixteen bytes as a number, the first one lowest.
fn low_bytes(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |low, &byte| (low << 8) | u128::from(byte))
}

/// The text of a number padded to `width` digits, first character lowest, and its length. `None` if it is not
/// short, or not right.
#[inline]
fn short_number(number: i64, width: usize) -> Option<(u128, u32)> {
    const ZEROS: u128 = u128::from_le_bytes([b'0'; 16]);
    let number = u64::try_from(number).ok().filter(|&number| number < 1_000_000_000_000_000)?;
    let (high, low) = (number / 100_000_000, number % 100_000_000);
    let high = if high == 0 { 0 } else { eight_digits(high) };
    let digits = u128::from(high) | (u128::from(eight_digits(low)) << 64);
    // Leading zeros are the lowest bytes.
    let significant = if digits == 0 { 1 } else { 16 - digits.trailing_zeros() / 8 };
    let len = match width {
        0 => significant,
        width => {
            u32::try_from(width).ok().filter(|&width| significant <= width && width as usize <= SHORT)?
        }
    };
    Some(((digits | ZEROS) >> (8 * (16 - len)), len))
}

/// The eight decimal digits of a number below 10^8, one a byte, the first one lowest. Halves, quarters and
/// eighths are computed side by side. Each division is a multiplication, which is exact for such small
/// numbers.
#[inline]
const fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - tens * 10) << 8)
}

/// Pairs of decimal digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

/// Appends a number padded to `width` digits. `None` if it is negative or has too many digits.
#[inline]
fn append_number(number: i64, width: usize, text: &mut Vec<u8>) -> Option<()> {
    let mut rest = u64::try_from(number).ok()?;
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while rest >= 10 {
        at -= 2;
        digits.get_mut(at..at + 2)?.copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest > 0 {
        at -= 1;
        *digits.get_mut(at)? = b'0' + rest as u8;
    }
    let len = digits.len() - at;
    let len = match width {
        0 => len.max(1),
        width => (len <= width).then_some(width)?,
    };
    if len > MAX_DIGITS {
        return None;
    }
    text.extend_from_slice(digits.get(digits.len() - len..)?);
    Some(())
}

impl Node for DigitsNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Digits.name());
        out.push_str(" > ");
        self.numbers.describe(out);
    }

    fn decode(&self) -> Result<Values> {
        let mut numbers: Vec<i64> = Vec::new();
        self.numbers.decode_into(&mut numbers)?;
        self.text(&numbers)
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        let mut numbers: Vec<i64> = Vec::new();
        self.numbers.take_into(rows, &mut numbers)?;
        self.text(&numbers)
    }

    fn single<'s>(&'s self, row: usize, room: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let number = self.numbers.get(row)?;
        room.clear();
        room.extend_from_slice(self.form.prefix);
        append_number(number, self.form.width, room)
            .ok_or_else(|| Error::corrupt(format!("number {number} in text")))?;
        Ok(Some(Single::Bytes(room)))
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        // Padded numbers of one prefix are in the order of their text.
        let Some(test) = mapped(leaf, self.form.width > 0, |text| self.form.parse(text)) else {
            return Ok(None);
        };
        let mut mask = Bitmap::filled(self.rows, false);
        if let Mapped::Among { values, negated: false } = &test
            && values.is_empty()
        {
            return Ok(Some(mask));
        }
        let mut numbers: Vec<i64> = Vec::new();
        self.numbers.decode_into(&mut numbers)?;
        for row in selection.iter() {
            if numbers.get(row as usize).is_some_and(|number| test.passes(number)) {
                mask.set(row as usize, true);
            }
        }
        Ok(Some(mask))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn numbers_are_written_as_they_were_read() {
        let numbers =
            [0i64, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 4711, 99_999, 100_000, 999_999_999_999_999_999];
        for number in numbers {
            let mut text = Vec::new();
            append_number(number, 0, &mut text).unwrap();
            assert_eq!(text, number.to_string().as_bytes());
            for width in 1..=18 {
                let mut text = Vec::new();
                let padded = format!("{number:0width$}");
                assert_eq!(append_number(number, width, &mut text).is_some(), padded.len() == width);
                if padded.len() == width {
                    assert_eq!(text, padded.as_bytes());
                }
            }
        }
        assert!(append_number(-1, 0, &mut Vec::new()).is_none());
        assert!(append_number(1_000_000_000_000_000_000, 0, &mut Vec::new()).is_none());
    }

    #[test]
    fn short_numbers_are_the_same_text() {
        let mut numbers: Vec<i64> = (0..20_000).chain((0..63).map(|bit| 1i64 << bit)).collect();
        for power in 0..18 {
            numbers.extend([10i64.pow(power), 10i64.pow(power) - 1, 10i64.pow(power) * 9 + 7]);
        }
        for (at, &number) in numbers.iter().enumerate() {
            for width in [0, at % 17 + 1] {
                let mut text = Vec::new();
                let written = append_number(number, width, &mut text);
                if let Some((bits, len)) = short_number(number, width) {
                    assert!(written.is_some(), "{number} {width}");
                    assert_eq!(bits.to_le_bytes()[..len as usize], text, "{number} {width}");
                } else {
                    assert!(
                        number >= 1_000_000_000_000_000 || width > SHORT || written.is_none(),
                        "{number} {width}"
                    );
                }
            }
        }
        assert!((0..100_000_000u64).step_by(9973).all(|n| {
            format!("{n:08}").bytes().map(|digit| digit - b'0').eq(eight_digits(n).to_le_bytes())
        }));
        assert!(short_number(-1, 0).is_none());
    }

    #[test]
    fn nodes_put_prefixes_of_any_length_before_numbers() {
        for head in [0, 3, 11, 12, 15, 16, 30] {
            for width in [0, 9] {
                let prefix = vec![b'p'; head];
                let numbers = [0i64, 7, 123_456_789, 4];
                let mut child = Writer::new();
                child.child(&prefix);
                child.count(width);
                integers::write_child(&numbers, integers::CHILD_DEPTH, &mut child);
                let bytes = child.into_bytes();
                let mut reader = Reader::new(&bytes);
                let prefix = reader.child().unwrap().rest();
                reader.varint().unwrap();
                let node = IntNode::open(&mut reader.child().unwrap(), 4, 2).unwrap();
                let node = DigitsNode { form: Form { prefix, width }, rows: 4, numbers: node };
                let Values::Bytes(views) = node.decode().unwrap() else { panic!("bytes") };
                let text = String::from_utf8(prefix.to_vec()).unwrap();
                let wanted: Vec<String> = numbers.iter().map(|n| format!("{text}{n:0width$}")).collect();
                assert!(views.iter().eq(wanted.iter().map(String::as_bytes)), "{head} {width}");
            }
        }
    }

    #[test]
    fn forms_hold_only_texts_with_one_spelling() {
        let form = |texts: &[&'static str]| Form::common(texts.iter().map(|t| t.as_bytes()));
        assert_eq!(form(&["/page/1", "/page/22"]), Some(Form { prefix: b"/page/", width: 0 }));
        assert_eq!(form(&["C#007", "C#120"]), Some(Form { prefix: b"C#", width: 3 }));
        assert_eq!(form(&["0", "7"]), Some(Form { prefix: b"", width: 0 }));
        assert_eq!(form(&["007", "7"]), None, "two spellings");
        assert_eq!(form(&["a1", "b1"]), None);
        assert_eq!(form(&["a1", "a"]), None);
        assert_eq!(form(&["+1", "1"]), None);
        assert_eq!(form(&[]), None);
        // More than 18 digits: what does not fit becomes prefix.
        let form = form(&["12345678901234567890123", "12345678901234567890124"]).unwrap();
        assert_eq!(form.prefix, b"12345");
        assert_eq!(form.parse(b"12345678901234567890124"), Some(678_901_234_567_890_124));
    }
}
