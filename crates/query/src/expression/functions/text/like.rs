//! LIKE: the pattern is compiled once.
//!
//! A pattern is split at its `%` into parts of literal bytes and `_`. The first part stands at the start of
//! the text and the last part at its end. The parts between are looked for one after the other, each as far
//! left as possible. This leaves the most text for the parts that follow, so no choice is ever taken back.
//! Literals are found bytewise: in UTF-8 no character's bytes occur within another.

use memchr::memmem::Finder;
use vector::{Bitmap, ByteView, Values};

use super::case::OTHER_LETTERS;
use super::{begins, texts};
use crate::expression::CaseRule;
use crate::expression::functions::compare::by_row;
use crate::expression::functions::lanes::{Texts, any_fails};
use crate::expression::functions::{Output, Picked, Value};
use crate::kernels::compare::test_each;

/// A compiled pattern.
pub(super) enum Pattern {
    /// No wildcard.
    Exactly(Vec<u8>),
    /// `x%`
    Prefix(Vec<u8>),
    /// `%x`
    Suffix(Vec<u8>),
    /// `%x%y%`: these, one after the other.
    Contains(Vec<Finder<'static>>),
    /// Anything else.
    Parts(Vec<Part>),
}

/// The part between two `%`: literals, and the number of any characters before each.
pub(super) struct Part {
    pieces: Vec<(usize, Finder<'static>)>,
    /// Any characters after the last literal.
    after: usize,
    /// Characters in all.
    characters: usize,
}

impl Pattern {
    /// None for a pattern that ends in the middle of an escape.
    pub fn new(pattern: &[u8]) -> Option<Self> {
        let (mut parts, mut any) = (Vec::new(), true);
        let mut part: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut gap = 0;
        let mut bytes = pattern.iter().copied();
        let finish = |part: &mut Vec<(usize, Vec<u8>)>, gap: &mut usize| {
            let characters =
                part.iter().map(|(gap, literal)| gap + super::characters(literal)).sum::<usize>() + *gap;
            let pieces =
                part.drain(..).map(|(gap, literal)| (gap, Finder::new(&literal).into_owned())).collect();
            Part { pieces, after: std::mem::take(gap), characters }
        };
        while let Some(byte) = bytes.next() {
            let literal = match byte {
                b'%' => {
                    parts.push(finish(&mut part, &mut gap));
                    continue;
                }
                b'_' => {
                    (gap, any) = (gap + 1, false);
                    continue;
                }
                b'\\' => bytes.next()?,
                other => other,
            };
            match part.last_mut() {
                Some((_, last)) if gap == 0 => last.push(literal),
                _ => part.push((std::mem::take(&mut gap), vec![literal])),
            }
        }
        parts.push(finish(&mut part, &mut gap));
        if !any {
            return Some(Self::Parts(parts));
        }
        let literal =
            |part: &Part| part.pieces.first().map_or_else(Vec::new, |(_, finder)| finder.needle().to_vec());
        let is_empty = |part: &Part| part.pieces.is_empty();
        Some(match parts.as_slice() {
            [only] => Self::Exactly(literal(only)),
            [first, rest @ ..] if rest.iter().all(is_empty) && !is_empty(first) => {
                Self::Prefix(literal(first))
            }
            [rest @ .., last] if rest.iter().all(is_empty) && !is_empty(last) => Self::Suffix(literal(last)),
            [first, .., last] if is_empty(first) && is_empty(last) => Self::Contains(
                parts.into_iter().flat_map(|part| part.pieces).map(|(_, finder)| finder).collect(),
            ),
            _ => Self::Parts(parts),
        })
    }

    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Exactly(literal) => text == literal.as_slice(),
            Self::Prefix(literal) => text.starts_with(literal),
            Self::Suffix(literal) => text.ends_with(literal),
            Self::Contains(finders) => {
                let mut rest = text;
                finders.iter().all(|finder| match finder.find(rest) {
                    Some(at) => {
                        rest = rest.get(at + finder.needle().len()..).unwrap_or_default();
                        true
                    }
                    None => false,
                })
            }
            Self::Parts(parts) => match parts.as_slice() {
                [] => text.is_empty(),
                [only] => only.at(text).is_some_and(<[u8]>::is_empty),
                [first, between @ .., last] => {
                    let Some(mut rest) = first.at(text) else { return false };
                    for part in between {
                        let Some(after) = part.find(rest) else { return false };
                        rest = after;
                    }
                    last.ends(rest)
                }
            },
        }
    }
}

/// The text without its first characters; None if it has fewer.
fn skip(text: &[u8], characters: usize) -> Option<&[u8]> {
    if characters == 0 {
        return Some(text);
    }
    let mut starts = text.iter().enumerate().filter(|&(_, &byte)| begins(byte)).skip(characters);
    match starts.next() {
        Some((at, _)) => text.get(at..),
        None => (super::characters(text) == characters).then_some(&[]),
    }
}

impl Part {
    /// The rest of a text that starts with this part; None for other texts.
    fn at<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let mut rest = text;
        for (gap, finder) in &self.pieces {
            rest = skip(rest, *gap)?.strip_prefix(finder.needle())?;
        }
        skip(rest, self.after)
    }

    /// The rest of a text after the first place where this part occurs.
    fn find<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let Some((gap, first)) = self.pieces.first() else { return skip(text, self.after) };
        let mut from = skip(text, *gap)?;
        loop {
            let at = first.find(from)?;
            let mut rest = from.get(at + first.needle().len()..);
            for (gap, finder) in self.pieces.get(1..).unwrap_or_default() {
                rest = rest.and_then(|rest| skip(rest, *gap)?.strip_prefix(finder.needle()));
            }
            if let Some(after) = rest.and_then(|rest| skip(rest, self.after)) {
                return Some(after);
            }
            from = skip(from.get(at..)?, 1)?;
        }
    }

    /// Whether a text ends with it.
    fn ends(&self, text: &[u8]) -> bool {
        if self.characters == 0 {
            return true;
        }
        let starts = text.iter().enumerate().rev().filter(|&(_, &byte)| begins(byte));
        match starts.map(|(at, _)| at).nth(self.characters - 1) {
            Some(at) => text.get(at..).and_then(|end| self.at(end)).is_some_and(<[u8]>::is_empty),
            None => false,
        }
    }
}

/// LIKE with a known pattern.
pub(super) fn compile(pattern: &[u8]) -> Option<Picked> {
    let pattern = Pattern::new(pattern)?;
    Some((
        Box::new(move |arguments: &[Value], rows: usize, _: Option<&Bitmap>| {
            let texts = texts(arguments, 0)?;
            let words = match (&pattern, texts) {
                (Pattern::Prefix(prefix), Texts::Many(views)) => match short_prefix(prefix) {
                    Some((wanted, mask)) => test_each(views.views(), |view: ByteView| {
                        u32::from_le_bytes(view.prefix()) & mask == wanted && view.len() >= prefix.len()
                    }),
                    None => by_row(rows, |row| views.get(row).starts_with(prefix)),
                },
                _ => by_row(rows, |row| pattern.matches(texts.get(row))),
            };
            Ok(Output::from(Values::Bool(Bitmap::from_words(words, rows))))
        }),
        30,
    ))
}

/// Up to four bytes that a view tells, as a number and what of it counts.
fn short_prefix(prefix: &[u8]) -> Option<(u32, u32)> {
    let bits = prefix.iter().rev().fold(0u64, |bits, &byte| (bits << 8) | u64::from(byte));
    let mask = (1u64 << (8 * prefix.len().min(4))) - 1;
    (prefix.len() <= 4).then_some((bits as u32, mask as u32))
}

/// ILIKE with a known pattern.
pub(super) fn compile_without_case(pattern: &[u8], rule: CaseRule) -> Option<Picked> {
    if rule == CaseRule::Locale && !pattern.is_ascii() {
        return None;
    }
    let pattern = Pattern::new(&pattern.to_ascii_lowercase())?;
    Some((
        Box::new(move |arguments: &[Value], rows: usize, valid: Option<&Bitmap>| {
            let texts = texts(arguments, 0)?;
            let mut other = false;
            let mut lowered = Vec::new();
            let words = by_row(rows, |row| {
                lowered.clear();
                lowered.extend_from_slice(texts.get(row));
                other |= rule == CaseRule::Locale && !lowered.is_ascii();
                lowered.make_ascii_lowercase();
                pattern.matches(&lowered)
            });
            if other && any_fails(rows, valid, |row| !texts.get(row).is_ascii()) {
                return Err(OTHER_LETTERS);
            }
            Ok(Output::from(Values::Bool(Bitmap::from_words(words, rows))))
        }),
        40,
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::Pattern;

    /// LIKE by trying everything.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|at| slow(rest, &text[at..])),
            ['_', rest @ ..] => !text.is_empty() && slow(rest, &text[1..]),
            ['\\', literal, rest @ ..] | [literal, rest @ ..] => {
                text.first() == Some(literal) && slow(rest, &text[1..])
            }
        }
    }

    #[test]
    fn patterns_match_what_trying_everything_matches() {
        let alphabet = ['a', 'b', 'ä', '%', '_', '\\'];
        let mut words = vec![String::new()];
        let mut last = words.clone();
        for _ in 0..4 {
            last = last.iter().flat_map(|word| alphabet.map(|letter| format!("{word}{letter}"))).collect();
            words.extend_from_slice(&last);
        }
        let texts: Vec<&String> =
            words.iter().filter(|word| !word.contains('\\') && !word.contains('_')).collect();
        let mut matched = 0;
        for pattern in &words {
            let chars: Vec<char> = pattern.chars().collect();
            let Some(compiled) = Pattern::new(pattern.as_bytes()) else {
                assert!(pattern.ends_with('\\'));
                continue;
            };
            for text in &texts {
                let wanted = slow(&chars, &text.chars().collect::<Vec<_>>());
                matched += u32::from(wanted);
                assert_eq!(compiled.matches(text.as_bytes()), wanted, "{text} like {pattern}");
            }
        }
        assert!(matched > 10_000);
    }

    #[test]
    fn several_literals_in_a_row_of_wildcards() {
        let like =
            |text: &str, pattern: &str| Pattern::new(pattern.as_bytes()).unwrap().matches(text.as_bytes());
        assert!(like("the special packages and requests", "%special%requests%"));
        assert!(!like("the requests are special", "%special%requests%"));
        assert!(like("abcXbYcd", "a%b_c%d"));
        assert!(!like("abc", "abc_%"));
        assert!(like("forest green", "forest%"));
        assert!(like("aab", "%a_"));
    }
}
