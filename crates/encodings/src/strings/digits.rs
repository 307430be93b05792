//! Text that is a common prefix and a decimal number, as integers: '/page/4711', 'Customer#000000001', '20240131'.
//!
//! Payload: the prefix (with its length before it), the number of digits every number is padded to (varint, 0 = no padding), an integer
//! node of the numbers (with its length before it). Unpadded numbers have no leading zero ('0' itself apart), so each number has one text.
//! The integers then shrink as integers do: counting keys to nearly nothing.
//!
//! Invariant: at most 18 digits, so that every number fits 64 bits.

use std::ops::Range;

use vector::{Bitmap, ByteViews, Error, INLINE_BYTES, Result, Selection, Values, Vector};

use super::hex::only_bytes;
use super::leaf::{Mapped, mapped};
use super::profile;
use super::views::view;
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, Node, NodeContext, Sample};
use crate::integers::{self, IntNode};
use crate::options::{EncodeOptions, EncodingId};

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
    /// The form of a text, judged by it alone: as many trailing digits as there are.
    fn of(text: &'p [u8]) -> Option<Self> {
        let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count().min(MAX_DIGITS);
        let (prefix, number) = text.split_at_checked(text.len() - digits)?;
        let padded = number.len() > 1 && number.first() == Some(&b'0');
        (digits > 0 && prefix.len() <= MAX_PREFIX)
            .then_some(Self { prefix, width: if padded { digits } else { 0 } })
    }

    /// One form for all texts, if there is one.
    fn common(texts: impl Iterator<Item = &'p [u8]> + Clone) -> Option<Self> {
        // The shortest prefix wins: digits before the number that all share must not count as prefix of some only.
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
        // Values that repeat are better off as a dictionary: filters and groupings touch each entry once.
        let profile = profile::of(sample)?;
        if profile.distinct * 8.0 < profile.rows as f64 {
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
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<Box<dyn Node + 'a>> {
    only_bytes(EncodingId::Digits, context)?;
    let prefix = reader.child()?.rest();
    if prefix.len() > MAX_PREFIX {
        return Err(Error::corrupt(format!("prefix of {} bytes", prefix.len())));
    }
    let width = reader.count(MAX_DIGITS, "digits")?;
    let numbers = IntNode::open(&mut reader.child()?, context.rows, context.deeper()?)?;
    Ok(Box::new(DigitsNode { form: Form { prefix, width }, rows: context.rows, numbers }))
}

struct DigitsNode<'a> {
    form: Form<'a>,
    rows: usize,
    numbers: IntNode<'a>,
}

impl DigitsNode<'_> {
    fn text(&self, numbers: &[i64]) -> Result<Values> {
        let longest = self.form.prefix.len() + MAX_DIGITS + 1;
        let mut views = Vec::with_capacity(numbers.len());
        let mut data = Vec::new();
        let mut text = Vec::with_capacity(longest);
        text.extend_from_slice(self.form.prefix);
        for &number in numbers {
            text.truncate(self.form.prefix.len());
            append_number(number, self.form.width, &mut text)
                .ok_or_else(|| Error::corrupt(format!("number {number} in text")))?;
            let offset = u32::try_from(data.len()).map_err(|_| Error::corrupt("numbers of over 4 GiB"))?;
            if text.len() > INLINE_BYTES {
                data.extend_from_slice(&text);
            }
            views.extend(view(&text, offset));
        }
        Ok(Values::Bytes(ByteViews::from_parts(views, vec![std::sync::Arc::new(data)])))
    }
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

/// Appends a number padded to `width` digits; `None` when it is negative or has more digits than it may.
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
