//! Regular expressions that match a whole text or nothing: `^...$`, matched here instead of by the host.
//!
//! This file understands a part of PostgreSQL's advanced regular expressions, for which there is no doubt
//! what each part of the pattern matches:
//! - characters, `.`, sets of ASCII characters and ranges, each once or with `*`, `+` or `?`;
//! - `(?:text)` once or with `?`;
//! - captures that hold such items.
//!
//! It does not understand alternatives, captures within captures and anything that depends on a locale. The
//! server gives each capture, and each stretch between captures, the longest part from the left with which
//! the rest still matches. A matcher that goes back from the longest try of each item finds the same match,
//! provided that no stretch can match one part of the text in two ways. `is_certain` checks this by the bytes
//! that items begin with.

/// A pattern.
#[derive(Debug)]
pub struct Anchored {
    items: Vec<Item>,
    captures: usize,
}

#[derive(Debug)]
enum Item {
    Text(Vec<u8>),
    /// The text or nothing.
    Maybe(Vec<u8>),
    /// Characters of a set, as many as possible.
    Run {
        set: Box<Set>,
        least: usize,
        most: usize,
    },
    Open(usize),
    Close(usize),
}

/// A set of characters, by their bytes. Either all characters beyond ASCII are in it or none.
#[derive(Debug)]
struct Set {
    bytes: [bool; 256],
    /// The only byte that is not in it.
    without: Option<u8>,
}

/// Where captures are.
pub type Captures = [(usize, usize); MOST_CAPTURES];

/// Captures that a replacement can name.
pub const MOST_CAPTURES: usize = 9;

/// The steps of a match came to an end: the pattern goes back too often in this text.
#[derive(Debug)]
pub struct TooLong;

impl Set {
    fn of(bytes: [bool; 256]) -> Box<Self> {
        let mut out = (0..=255u8).filter(|&byte| !bytes[usize::from(byte)]);
        let without = out.next().filter(|_| out.next().is_none());
        Box::new(Self { bytes, without })
    }

    fn single(byte: u8) -> Box<Self> {
        let mut bytes = [false; 256];
        bytes[usize::from(byte)] = true;
        Self::of(bytes)
    }

    /// A text may begin with characters of the set. Gives the place where they end, after at most this many.
    fn run(&self, text: &[u8], most: usize) -> usize {
        match (most, self.without) {
            (1, _) => match text.first() {
                Some(&first) if self.bytes[usize::from(first)] => {
                    1 + text.iter().skip(1).take_while(|byte| !super::begins(**byte)).count()
                }
                _ => 0,
            },
            (_, Some(byte)) => memchr::memchr(byte, text).unwrap_or(text.len()),
            _ => text.iter().position(|&byte| !self.bytes[usize::from(byte)]).unwrap_or(text.len()),
        }
    }
}

impl Item {
    /// The bytes it may begin with.
    fn first(&self) -> [bool; 256] {
        match self {
            Self::Text(text) | Self::Maybe(text) => {
                let mut bytes = [false; 256];
                text.iter().take(1).for_each(|&byte| bytes[usize::from(byte)] = true);
                bytes
            }
            Self::Run { set, .. } => set.bytes,
            Self::Open(_) | Self::Close(_) => [false; 256],
        }
    }

    const fn may_be_empty(&self) -> bool {
        matches!(self, Self::Maybe(_) | Self::Run { least: 0, .. })
    }

    const fn varies(&self) -> bool {
        match self {
            Self::Maybe(_) => true,
            Self::Run { least, most, .. } => *least != *most,
            Self::Text(_) | Self::Open(_) | Self::Close(_) => false,
        }
    }
}

impl Anchored {
    /// The pattern, where it is understood.
    pub fn new(pattern: &[u8]) -> Option<Self> {
        let pattern = std::str::from_utf8(pattern).ok()?.strip_prefix('^')?;
        let mut parser = Parser { rest: pattern.chars().peekable(), items: Vec::new(), captures: 0 };
        parser.items()?;
        let Parser { items, captures, .. } = parser;
        (is_certain(&items) && captures <= MOST_CAPTURES).then_some(Self { items, captures })
    }

    /// How many captures there are.
    pub const fn captures(&self) -> usize {
        self.captures
    }

    /// The captures' places where the text matches.
    pub fn find(&self, text: &[u8]) -> Result<Option<Captures>, TooLong> {
        let mut attempt = Attempt { captures: [(0, 0); MOST_CAPTURES], steps: 4_096 + 16 * text.len() };
        let found = self.matches(0, text, 0, &mut attempt);
        match attempt.steps {
            0 => Err(TooLong),
            _ => Ok(found.then_some(attempt.captures)),
        }
    }

    /// Whether the items from one on match the text from a place on to its end.
    fn matches(&self, item: usize, text: &[u8], at: usize, attempt: &mut Attempt) -> bool {
        attempt.steps = attempt.steps.saturating_sub(1);
        if attempt.steps == 0 {
            return false;
        }
        let rest = text.get(at..).unwrap_or_default();
        match self.items.get(item) {
            None => rest.is_empty(),
            Some(Item::Text(wanted)) => {
                rest.starts_with(wanted) && self.matches(item + 1, text, at + wanted.len(), attempt)
            }
            Some(Item::Maybe(wanted)) => {
                rest.starts_with(wanted) && self.matches(item + 1, text, at + wanted.len(), attempt)
                    || self.matches(item + 1, text, at, attempt)
            }
            Some(Item::Open(number)) => {
                let ended = self.matches(item + 1, text, at, attempt);
                if let Some(capture) = attempt.captures.get_mut(*number).filter(|_| ended) {
                    capture.0 = at;
                }
                ended
            }
            Some(Item::Close(number)) => {
                let ended = self.matches(item + 1, text, at, attempt);
                if let Some(capture) = attempt.captures.get_mut(*number).filter(|_| ended) {
                    capture.1 = at;
                }
                ended
            }
            Some(Item::Run { set, least, most }) => {
                let mut length = set.run(rest, *most);
                if item + 1 == self.items.len() {
                    return length == rest.len() && length >= *least;
                }
                // At least one character is at least one byte.
                while length >= *least {
                    if self.matches(item + 1, text, at + length, attempt) {
                        return true;
                    }
                    if length == 0 || attempt.steps == 0 {
                        return false;
                    }
                    length -= 1;
                    while length > 0 && rest.get(length).is_some_and(|&byte| !super::begins(byte)) {
                        length -= 1;
                    }
                }
                false
            }
        }
    }
}

struct Attempt {
    captures: Captures,
    steps: usize,
}

/// Whether, for each item that may take more or less of the text, the items after it in its stretch never
/// begin as it does.
fn is_certain(items: &[Item]) -> bool {
    let stretches = items.split(|item| matches!(item, Item::Open(_) | Item::Close(_)));
    stretches.into_iter().all(|stretch| {
        (0..stretch.len()).filter(|&at| stretch.get(at).is_some_and(Item::varies)).all(|at| {
            let (before, after) = stretch.split_at(at + 1);
            let own = before.last().map_or([false; 256], Item::first);
            for next in after {
                if own.iter().zip(next.first()).any(|(own, next)| *own && next) {
                    return false;
                }
                if !next.may_be_empty() {
                    break;
                }
            }
            true
        })
    })
}

struct Parser<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    items: Vec<Item>,
    captures: usize,
}

/// How often an item may come.
enum Times {
    Once,
    Between(usize, usize),
}

impl Parser<'_> {
    /// All items up to the `$` at the end.
    fn items(&mut self) -> Option<()> {
        let mut open = None;
        loop {
            match self.rest.next()? {
                '$' if open.is_none() => return self.rest.next().is_none().then_some(()),
                '(' if self.rest.next_if_eq(&'?').is_some() => {
                    self.rest.next_if_eq(&':')?;
                    let mut text = String::new();
                    loop {
                        match self.rest.next()? {
                            ')' => break,
                            character => text.push(self.literal(character)?),
                        }
                    }
                    match self.times()? {
                        _ if text.is_empty() => return None,
                        Times::Once => self.text(&text),
                        Times::Between(0, 1) => self.items.push(Item::Maybe(text.into_bytes())),
                        Times::Between(..) => return None,
                    }
                }
                '(' if open.is_none() => {
                    open = Some(self.items.len());
                    self.items.push(Item::Open(self.captures));
                }
                ')' => {
                    // Something has to be in it, and it comes once.
                    if open.take()? + 1 == self.items.len() || !matches!(self.times()?, Times::Once) {
                        return None;
                    }
                    self.items.push(Item::Close(self.captures));
                    self.captures += 1;
                }
                '.' => self.set([true; 256])?,
                '[' => {
                    let bytes = self.bracket()?;
                    self.set(bytes)?;
                }
                character => {
                    let character = self.literal(character)?;
                    match (self.times()?, u8::try_from(character)) {
                        (Times::Once, _) => self.text(character.encode_utf8(&mut [0; 4])),
                        (Times::Between(least, most), Ok(byte)) if byte.is_ascii() => {
                            self.items.push(Item::Run { set: Set::single(byte), least, most });
                        }
                        _ => return None,
                    }
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        match self.items.last_mut() {
            Some(Item::Text(before)) => before.extend_from_slice(text.as_bytes()),
            _ => self.items.push(Item::Text(text.as_bytes().to_vec())),
        }
    }

    fn set(&mut self, bytes: [bool; 256]) -> Option<()> {
        let (least, most) = match self.times()? {
            Times::Once => (1, 1),
            Times::Between(least, most) => (least, most),
        };
        self.items.push(Item::Run { set: Set::of(bytes), least, most });
        Some(())
    }

    /// A character that stands for itself.
    fn literal(&mut self, character: char) -> Option<char> {
        match character {
            '\\' => self.rest.next().filter(|next| next.is_ascii() && !next.is_ascii_alphanumeric()),
            '^' | '$' | '.' | '[' | ']' | '(' | ')' | '{' | '}' | '*' | '+' | '?' | '|' => None,
            _ => Some(character),
        }
    }

    fn times(&mut self) -> Option<Times> {
        let times = match self.rest.peek() {
            Some('*') => Times::Between(0, usize::MAX),
            Some('+') => Times::Between(1, usize::MAX),
            Some('?') => Times::Between(0, 1),
            Some('{') => return None,
            _ => return Some(Times::Once),
        };
        self.rest.next();
        // As few as possible, or no pattern at all.
        let more = self.rest.peek().is_some_and(|next| matches!(next, '*' | '+' | '?' | '{'));
        (!more).then_some(times)
    }

    /// The characters of a set, after its `[`.
    fn bracket(&mut self) -> Option<[bool; 256]> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut bytes = [false; 256];
        let mut empty = true;
        loop {
            let from = match self.rest.next()? {
                ']' if !empty => break,
                from if is_plain(from) => from,
                _ => return None,
            };
            empty = false;
            let to = match self.rest.next_if_eq(&'-') {
                Some(_) => self.rest.next().filter(|to| is_plain(*to) && *to >= from)?,
                None => from,
            };
            let range = u8::try_from(from).ok()?..=u8::try_from(to).ok()?;
            range.for_each(|byte| bytes[usize::from(byte)] = true);
        }
        Some(if negated { bytes.map(|within| !within) } else { bytes })
    }
}

/// A character of a set that means nothing else there.
fn is_plain(character: char) -> bool {
    character.is_ascii() && !matches!(character, '[' | ']' | '\\' | '-' | '^')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn captures(pattern: &str, text: &str) -> Option<Vec<String>> {
        let pattern = Anchored::new(pattern.as_bytes()).unwrap();
        let found = pattern.find(text.as_bytes()).unwrap()?;
        Some(found.iter().take(pattern.captures()).map(|&(from, to)| text[from..to].to_owned()).collect())
    }

    #[test]
    fn captures_are_the_servers() {
        let host = r"^https?://(?:www\.)?([^/]+)/.*$";
        for (text, wanted) in [
            ("http://example.com/a/b", Some("example.com")),
            ("https://www.example.com/", Some("example.com")),
            ("https://www./x", Some("www.")),
            ("http://münchen.de/ü\n", Some("münchen.de")),
            ("http://example.com", None),
            ("ftp://example.com/", None),
            ("", None),
        ] {
            assert_eq!(captures(host, text), wanted.map(|w| vec![w.to_owned()]), "{text}");
        }
        let two = |a: &str, b: &str| Some(vec![a.to_owned(), b.to_owned()]);
        assert_eq!(captures("^(a*)(a*)b$", "aab"), two("aa", ""));
        assert_eq!(captures("^(.+)-([0-9]+)$", "a-b-12"), two("a-b", "12"));
        assert_eq!(captures("^(.)(.*)$", "äb"), two("ä", "b"));
        assert_eq!(captures("^(é.?)(.*)$", "éé€"), two("éé", "€"));
    }

    #[test]
    fn what_could_be_in_doubt_is_not_understood() {
        for pattern in [
            "abc",
            "^a",
            "a$",
            "^a|b$",
            "^(a(b))$",
            "^(a)?$",
            "^(?:ab)*$",
            r"^\d$",
            "^[[:alpha:]]$",
            "^a*?$",
            "^a{2}$",
            "^a?ab$",
            "^(?:a)?(?:ab)?(b?)$",
            "^(?i)a$",
            "^()$",
            "^é*$",
            "^[é]$",
            "^[z-a]$",
            "^a**$",
            r"^a\$",
            "^(a$",
            "^[a-]$",
            "^[A-]+]$",
            r"^\[[0-9.-]+]$",
        ] {
            assert!(Anchored::new(pattern.as_bytes()).is_none(), "{pattern}");
        }
    }

    #[test]
    fn going_back_too_often_is_told() {
        let pattern = Anchored::new(b"^(.*)(.*)(.*)(.*)(.*)x$").unwrap();
        assert!(pattern.find(&[b'a'; 2_000]).is_err());
        assert!(pattern.find(b"aax").unwrap().is_some());
    }
}
