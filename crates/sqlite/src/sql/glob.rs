//! GLOB: `*`, `?` and `[...]`, as the Unix shell has them.

/// Whether a text matches a pattern.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let pattern: Vec<char> = String::from_utf8_lossy(pattern).chars().collect();
    let text: Vec<char> = String::from_utf8_lossy(text).chars().collect();
    matches_from(&pattern, &text)
}

fn matches_from(mut pattern: &[char], mut text: &[char]) -> bool {
    // Where the last `*` was, and the text that it has not yet been given.
    let mut retry: Option<(&[char], &[char])> = None;
    loop {
        let step = match pattern.split_first() {
            None if text.is_empty() => return true,
            None => None,
            Some(('*', rest)) => {
                retry = Some((rest, text));
                pattern = rest;
                continue;
            }
            Some((one, rest)) => match (text.split_first(), *one) {
                (None, _) => None,
                (Some((_, left)), '?') => Some((rest, left)),
                (Some((character, left)), '[') => {
                    set(rest, *character).and_then(|(after, holds)| holds.then_some((after, left)))
                }
                (Some((character, left)), one) => (*character == one).then_some((rest, left)),
            },
        };
        match (step, retry) {
            (Some((rest, left)), _) => (pattern, text) = (rest, left),
            (None, Some((rest, from))) => match from.split_first() {
                Some((_, left)) => {
                    retry = Some((rest, left));
                    (pattern, text) = (rest, left);
                }
                None => return false,
            },
            (None, None) => return false,
        }
    }
}

/// What follows a set `...]` of characters, and whether the character is in it. None if it has no end.
fn set(pattern: &[char], character: char) -> Option<(&[char], bool)> {
    let (inverted, mut rest) = match pattern.split_first() {
        Some(('^', rest)) => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    let mut first = true;
    loop {
        let (&one, after) = rest.split_first()?;
        if one == ']' && !first {
            return Some((after, found != inverted));
        }
        first = false;
        match after {
            ['-', last, more @ ..] if *last != ']' => {
                found |= (one..=*last).contains(&character);
                rest = more;
            }
            _ => {
                found |= one == character;
                rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_sqlite_has_it() {
        for (pattern, text, expected) in [
            ("abc", "abc", true),
            ("abc", "ABC", false),
            ("a*c", "abbbc", true),
            ("a*c", "abbb", false),
            ("*b*", "abc", true),
            ("a?c", "a\u{e9}c", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[a-]", "-", true),
            ("*", "", true),
            ("?", "", false),
            ("a*b*c", "aXbXbXc", true),
            ("[abc", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
