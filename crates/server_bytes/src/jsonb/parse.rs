//! Text of JSON: whether it is some, and the document that the server's input function makes of it.
//!
//! Called by readers of other systems' files, whose JSON the server has never seen.
//!
//! Children of a container are put behind each other with gaps, as their final places are not known before
//! the last one was read: an object has its keys first, in their order, and of equal keys the last one
//! counts. When it ends, its children move to their places (`lay_out`).

use super::{ARRAY, CONTAINER, FALSE, HAS_END, LENGTH, NULL, NUMERIC, OBJECT, SCALAR, STRING, TRUE};
use crate::numeric;

/// How deep containers may nest, as each takes a frame of the stack.
const DEEPEST: usize = 1000;
/// Every such entry has the end of its child.
const STRIDE: usize = 32;
/// Parts that are not at their places yet, at most.
const MOST_PARTS: usize = 1 << 24;
/// How many bytes may be moved for one document, whatever its length, and for each byte of it. A part is
/// moved once for each container that it is in.
const MOVED: usize = 64 << 20;
const MOVED_A_BYTE: usize = 16;

/// Why a text is no document.
pub type Refusal = &'static str;
type Parsed<T> = Result<T, Refusal>;

const NO_JSON: Refusal = "is no JSON";
const TOO_LONG: Refusal = "is longer than jsonb may be";

/// Appends the document that a text stands for.
///
/// # Errors
/// Where it is no JSON, or has what jsonb has not: the character of number zero, numbers past those of
/// `numeric`, 256 MB in one container. Also where it nests more than 1,000 deep, has more than 16 million
/// parts, or is long and deep at once.
pub fn from_text(text: &str, out: &mut Vec<u8>) -> Parsed<()> {
    let mut parser = Parser::new(text, true);
    parser.document()?;
    if parser.parts.last().is_some_and(|part| part.kind != CONTAINER) {
        parser.lay_out(0, 0, ARRAY | SCALAR)?;
    }
    out.append(&mut parser.data);
    Ok(())
}

/// Whether a text is JSON, as the type `json` takes it.
///
/// # Errors
/// As `from_text`, but for what only jsonb has not.
pub fn check_text(text: &str) -> Parsed<()> {
    Parser::new(text, false).document()
}

/// A child, or a key, that is not at its place yet.
#[derive(Clone, Copy)]
struct Part {
    /// As in its entry.
    kind: u32,
    start: usize,
    end: usize,
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    /// A document is made. Else there is only a check.
    makes: bool,
    /// The bytes of parts.
    data: Vec<u8>,
    /// Those of all containers that are open, an object's keys before their values.
    parts: Vec<Part>,
    /// Bytes that were moved.
    moved: usize,
}

impl<'a> Parser<'a> {
    const fn new(text: &'a str, makes: bool) -> Self {
        Self { text: text.as_bytes(), at: 0, makes, data: Vec::new(), parts: Vec::new(), moved: 0 }
    }

    fn document(&mut self) -> Parsed<()> {
        self.value(0)?;
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(NO_JSON) }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// Passes over a byte, if it is next.
    fn has(&mut self, byte: u8) -> bool {
        let has = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(has);
        has
    }

    fn value(&mut self, depth: usize) -> Parsed<()> {
        self.space();
        match self.text.get(self.at) {
            Some(b'{') => self.container(depth, b'}', OBJECT),
            Some(b'[') => self.container(depth, b']', ARRAY),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true", TRUE),
            Some(b'f') => self.word(b"false", FALSE),
            Some(b'n') => self.word(b"null", NULL),
            _ => Err(NO_JSON),
        }
    }

    fn container(&mut self, depth: usize, end: u8, form: u32) -> Parsed<()> {
        if depth == DEEPEST {
            return Err("nests more than 1,000 deep");
        }
        self.at += 1;
        let (first, start) = (self.parts.len(), self.data.len());
        self.space();
        if !self.has(end) {
            loop {
                if form == OBJECT {
                    self.space();
                    if self.text.get(self.at) != Some(&b'"') {
                        return Err(NO_JSON);
                    }
                    self.string()?;
                    self.space();
                    if !self.has(b':') {
                        return Err(NO_JSON);
                    }
                }
                self.value(depth + 1)?;
                self.space();
                if self.has(end) {
                    break;
                }
                if !self.has(b',') {
                    return Err(NO_JSON);
                }
            }
        }
        self.lay_out(first, start, form)
    }

    fn word(&mut self, word: &[u8], kind: u32) -> Parsed<()> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(NO_JSON);
        }
        self.at += word.len();
        self.add(kind, self.data.len())
    }

    /// Adds a part whose bytes begin at `start`.
    fn add(&mut self, kind: u32, start: usize) -> Parsed<()> {
        if !self.makes {
            return Ok(());
        }
        if self.parts.len() >= MOST_PARTS {
            return Err("has more than 16 million parts");
        }
        // No container may have more, so no document has.
        if self.data.len() > 2 * LENGTH as usize {
            return Err(TOO_LONG);
        }
        self.parts.push(Part { kind, start, end: self.data.len() });
        Ok(())
    }

    fn digits(&mut self) -> Parsed<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.text.get(self.at) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(NO_JSON) }
    }

    fn number(&mut self) -> Parsed<()> {
        let start = self.at;
        self.has(b'-');
        // No other digit may follow a zero.
        if !self.has(b'0') {
            self.digits()?;
        }
        if self.has(b'.') {
            self.digits()?;
        }
        if self.has(b'e') || self.has(b'E') {
            let _ = self.has(b'-') || self.has(b'+');
            self.digits()?;
        }
        if self.makes {
            let begin = self.data.len();
            self.data.extend_from_slice(&[0; 4]);
            let text = self.text.get(start..self.at).unwrap_or_default();
            if !numeric::append(text, &mut self.data) {
                return Err("has a number that is past those of numeric");
            }
            // A length word of four bytes.
            let length = u32::try_from(self.data.len() - begin).map_err(|_| TOO_LONG)? << 2;
            if let Some(word) = self.data.get_mut(begin..begin + 4) {
                word.copy_from_slice(&length.to_le_bytes());
            }
            self.add(NUMERIC, begin)?;
        }
        Ok(())
    }

    fn string(&mut self) -> Parsed<()> {
        self.at += 1;
        let begin = self.data.len();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain =
                rest.iter().take_while(|&&byte| byte != b'"' && byte != b'\\' && byte >= b' ').count();
            if self.makes {
                self.data.extend_from_slice(rest.get(..plain).unwrap_or_default());
            }
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at += 1;
                    return self.add(STRING, begin);
                }
                Some(b'\\') => self.escape()?,
                _ => return Err(NO_JSON),
            }
        }
    }

    fn escape(&mut self) -> Parsed<()> {
        let letter = self.text.get(self.at + 1).copied();
        self.at += 2;
        let byte = match letter {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => b'\x08',
            Some(b'f') => b'\x0C',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.code_point(),
            _ => return Err(NO_JSON),
        };
        if self.makes {
            self.data.push(byte);
        }
        Ok(())
    }

    fn hex(&mut self) -> Parsed<u32> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(NO_JSON)?;
        self.at += 4;
        let mut value = 0;
        for &digit in digits {
            value = value * 16 + char::from(digit).to_digit(16).ok_or(NO_JSON)?;
        }
        Ok(value)
    }

    fn code_point(&mut self) -> Parsed<()> {
        const HALVES: Refusal = "has half of a surrogate pair";
        let mut code = self.hex()?;
        if !self.makes {
            return Ok(());
        }
        if let 0xD800..0xDC00 = code {
            if !(self.has(b'\\') && self.has(b'u')) {
                return Err(HALVES);
            }
            let low = self.hex()?;
            let 0xDC00..0xE000 = low else { return Err(HALVES) };
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        if code == 0 {
            return Err("has the character \\u0000");
        }
        let letter = char::from_u32(code).ok_or(HALVES)?;
        self.data.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// Makes a container of the parts from `first` on, whose bytes begin at `start`.
    fn lay_out(&mut self, first: usize, start: usize, form: u32) -> Parsed<()> {
        if !self.makes {
            return Ok(());
        }
        self.moved = self.moved.saturating_add(self.data.len() - start);
        if self.moved > MOVED + MOVED_A_BYTE * self.text.len() {
            return Err("is long and nests deep at once");
        }
        let (mut parts, is_object) = (self.parts.split_off(first), form == OBJECT);
        if is_object {
            parts = self.sorted(&parts);
        }
        let count = if is_object { parts.len() / 2 } else { parts.len() };
        let count = u32::try_from(count).ok().filter(|&count| count < LENGTH / 4).ok_or(TOO_LONG)?;
        let mut made = Vec::with_capacity(self.data.len() - start + 4 + 8 * parts.len());
        made.extend_from_slice(&(count | form).to_le_bytes());
        let entries = made.len();
        made.resize(entries + 4 * parts.len(), 0);
        let base = made.len();
        for (at, part) in parts.iter().enumerate() {
            let begin = made.len();
            if matches!(part.kind, NUMERIC | CONTAINER) {
                made.resize(begin.next_multiple_of(4), 0);
            }
            made.extend_from_slice(self.data.get(part.start..part.end).unwrap_or_default());
            let (length, end) = (made.len() - begin, made.len() - base);
            if end > LENGTH as usize {
                return Err(TOO_LONG);
            }
            // Both are below the bits of kinds.
            let entry = match at.is_multiple_of(STRIDE) {
                true => HAS_END | part.kind | end as u32,
                false => part.kind | length as u32,
            };
            if let Some(word) = made.get_mut(entries + 4 * at..entries + 4 * at + 4) {
                word.copy_from_slice(&entry.to_le_bytes());
            }
        }
        if made.len() > LENGTH as usize {
            return Err(TOO_LONG);
        }
        self.data.truncate(start);
        self.data.append(&mut made);
        self.add(CONTAINER, start)
    }

    /// Keys in the order of an object, then their values. Of equal keys the last one counts.
    fn sorted(&self, pairs: &[Part]) -> Vec<Part> {
        let mut pairs: Vec<_> = pairs.as_chunks::<2>().0.iter().copied().rev().collect();
        let key = |[key, _]: &[Part; 2]| {
            let bytes = self.data.get(key.start..key.end).unwrap_or_default();
            (bytes.len(), bytes)
        };
        pairs.sort_by(|one, other| key(one).cmp(&key(other)));
        pairs.dedup_by(|later, earlier| key(later) == key(earlier));
        let keys = pairs.iter().map(|[key, _]| *key);
        keys.chain(pairs.iter().map(|[_, value]| *value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{check_text, from_text};
    use crate::jsonb::{Container, Item, text::write_item};

    fn shown(text: &str) -> String {
        let (mut bytes, mut out) = (Vec::new(), Vec::new());
        if let Err(why) = from_text(text, &mut bytes) {
            return why.into();
        }
        let root = Container::root(&bytes).unwrap();
        match root.is_scalar() {
            true => write_item(&root.children().next().unwrap().unwrap(), &mut out).unwrap(),
            false => write_item(&Item::Container(root), &mut out).unwrap(),
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn documents_are_those_of_the_text() {
        for (text, expected) in [
            ("null", "null"),
            (" true ", "true"),
            ("-12.50e1", "-125.0"),
            (r#""a\u00fc\ud83d\ude00\n\/""#, "\"a\u{fc}\u{1f600}\\n/\""),
            ("[]", "[]"),
            ("{}", "{}"),
            (
                r#"{"bb": 1, "a": [1, "x", {"y": null}], "bb": 2, "c": true}"#,
                r#"{"a": [1, "x", {"y": null}], "c": true, "bb": 2}"#,
            ),
            ("[[[1]], 2.0, [[]]]", "[[[1]], 2.0, [[]]]"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
            assert_eq!(check_text(text), Ok(()));
        }
        let many: Vec<_> = (0..100).map(|n| format!("{n}.5")).collect();
        let many = format!("[{}]", many.join(", "));
        assert_eq!(shown(&many), many);
        let pairs: Vec<_> = (100..200).map(|n| format!("\"k{n}\": [{n}, \"{n}\"]")).collect();
        let pairs = format!("{{{}}}", pairs.join(", "));
        assert_eq!(shown(&pairs), pairs);
    }

    #[test]
    fn bytes_are_the_servers() {
        let mut bytes = Vec::new();
        from_text(r#"{"a": 1, "b": "x"}"#, &mut bytes).unwrap();
        let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        // Two pairs; the end of the first key, a key of one byte, a number of ten bytes with its padding,
        // text; then "ab", padding, the numeric with its length word, "x".
        assert_eq!(words[..5], [0x2000_0002, 0x8000_0001, 1, 0x1000_000a, 1]);
        assert_eq!(bytes[20..], [b'a', b'b', 0, 0, 8 << 2, 0, 0, 0, 0, 0x80, 1, 0, b'x']);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            " ",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{a: 1}",
            "{\"a\":1,}",
            "01",
            "1.",
            ".5",
            "-",
            "1e",
            "+1",
            "tru",
            "nullx",
            "[1]]",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\n\"",
            "'a'",
            "NaN",
            "[",
            "{",
            "1 2",
            "\"\\u12g4\"",
        ] {
            assert_eq!(shown(text), "is no JSON", "{text}");
            assert_eq!(check_text(text), Err("is no JSON"), "{text}");
        }
        for (text, why) in [
            (r#""\u0000""#, "has the character \\u0000"),
            (r#""\ud800""#, "has half of a surrogate pair"),
            (r#""\ud800\u0041""#, "has half of a surrogate pair"),
            (r#""\udc00""#, "has half of a surrogate pair"),
            ("1e200000", "has a number that is past those of numeric"),
        ] {
            assert_eq!(shown(text), why);
            assert_eq!(check_text(text), Ok(()), "json takes {text}");
        }
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(shown(&deep(1000)), deep(1000));
        assert_eq!(shown(&deep(1001)), "nests more than 1,000 deep");
    }

    #[test]
    fn what_takes_too_much_is_refused() {
        let long_and_deep = format!("{}\"{}\"{}", "[".repeat(900), "x".repeat(1 << 20), "]".repeat(900));
        assert_eq!(shown(&long_and_deep), "is long and nests deep at once");
        let many = format!("[{}0]", "0,".repeat(super::MOST_PARTS));
        assert_eq!(shown(&many), "has more than 16 million parts");
    }
}
