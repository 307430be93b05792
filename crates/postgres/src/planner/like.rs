//! LIKE patterns as prefixes.
//!
//! Called by `template` (is the shape exact?) and `constant` (what does this pattern mean?). The pattern
//! language is the server's: `%`, `_`, and a backslash that makes the next character literal. A lone
//! backslash at the end is an error there, so such a pattern is left to the server. Patterns match bytes,
//! because in the server's encodings no character's first byte is part of another character.

use pgrx::pg_sys;

use crate::convert::varlena;
use crate::host::tree::Node;

/// What a pattern asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// These bytes and nothing else.
    Whole(Vec<u8>),
    /// These bytes, then anything: `abc%`.
    Prefix(Vec<u8>),
    /// These bytes, then something that needs more than a prefix.
    PrefixAndMore(Vec<u8>),
    /// The server reports an error for this pattern.
    Malformed,
}

/// Reads a pattern.
pub fn parse(pattern: &[u8]) -> Pattern {
    let mut literal = Vec::with_capacity(pattern.len());
    let mut rest = pattern.iter();
    while let Some(&byte) = rest.next() {
        match byte {
            b'\\' => match rest.next() {
                Some(&escaped) => literal.push(escaped),
                None => return Pattern::Malformed,
            },
            b'%' if rest.as_slice().iter().all(|&more| more == b'%') => return Pattern::Prefix(literal),
            b'%' | b'_' => return Pattern::PrefixAndMore(literal),
            _ => literal.push(byte),
        }
    }
    Pattern::Whole(literal)
}

/// True when the pattern, which is a text, is a constant that means a prefix or a whole value, so that
/// nothing is left to check.
pub fn is_exact_shape(pattern: Node<'_>) -> bool {
    // SAFETY: a text that is not NULL.
    let bytes = |value: &pg_sys::Const| unsafe { varlena::bytes_of(value.constvalue) };
    pattern.as_a::<pg_sys::Const>().is_some_and(|value| {
        value.constisnull || matches!(parse(&bytes(&value)), Pattern::Whole(_) | Pattern::Prefix(_))
    })
}

#[cfg(test)]
mod tests {
    use super::{Pattern, parse};

    #[test]
    fn patterns_mean_what_the_server_means() {
        assert_eq!(parse(b"abc"), Pattern::Whole(b"abc".to_vec()));
        assert_eq!(parse(b""), Pattern::Whole(Vec::new()));
        assert_eq!(parse(b"abc%"), Pattern::Prefix(b"abc".to_vec()));
        assert_eq!(parse(b"abc%%"), Pattern::Prefix(b"abc".to_vec()));
        assert_eq!(parse(b"%"), Pattern::Prefix(Vec::new()));
        assert_eq!(parse(b"a%c"), Pattern::PrefixAndMore(b"a".to_vec()));
        assert_eq!(parse(b"a%_"), Pattern::PrefixAndMore(b"a".to_vec()));
        assert_eq!(parse(b"ab_"), Pattern::PrefixAndMore(b"ab".to_vec()));
        assert_eq!(parse(b"a\\%b%"), Pattern::Prefix(b"a%b".to_vec()));
        assert_eq!(parse(b"a\\\\"), Pattern::Whole(b"a\\".to_vec()));
        assert_eq!(parse(b"a\\"), Pattern::Malformed);
    }
}
