//! The text of a query: asked of SQLite, parsed, and looked at for names.
//!
//! SQLite compiles the text first. So a query that reaches the parser has no error of its own, its columns
//! are called as SQLite calls them, and whoever may not read a table is told so.

use std::collections::{HashMap, HashSet};

use sqlite3_parser::FallibleIterator as _;
use sqlite3_parser::ast::{Cmd, Select, Stmt};
use sqlite3_parser::lexer::sql::Parser;

use super::names::unquoted;
use super::typed::unsupported;
use crate::api::{Connection, Error, Result};

/// What SQLite says of a query.
#[derive(Debug, Clone)]
pub struct Described {
    /// The text, with every parameter numbered.
    pub text: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The names of its parameters, from 1 on; `?` has none.
    pub parameters: Vec<String>,
}

impl Described {
    /// Asks SQLite. An error for what is no query, or has several statements.
    pub fn new(db: Connection, text: &str) -> Result<Self> {
        let text = text.trim().trim_end_matches(';').trim_end();
        let statement = db.prepare(text)?;
        if !statement.is_readonly() || statement.column_count() == 0 {
            return Err(Error::new("columnar_query takes a SELECT"));
        }
        let columns = (0..statement.column_count()).map(|at| statement.column_name(at)).collect();
        let parameters = (1..=statement.parameter_count()).map(|at| statement.parameter_name(at)).collect();
        Ok(Self { text: offset_last(&numbered(text)), columns, parameters })
    }
}

/// A piece of a text.
enum Piece<'t> {
    /// A word, or a quoted name.
    Word(&'t str),
    /// A sign.
    Sign(char),
    /// Quoted text, a comment, a blank.
    Other(&'t str),
}

/// Cuts a text into pieces.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let until = |rest: &str, end: &str, from: usize| {
        let inner = rest.get(from..).unwrap_or_default();
        inner.find(end).map_or(rest.len(), |at| from + at + end.len())
    };
    while let Some(first) = rest.chars().next() {
        let (length, kind) = match first {
            '\'' => (until(rest, "'", 1), 0),
            '"' => (until(rest, "\"", 1), 1),
            '`' => (until(rest, "`", 1), 1),
            '[' => (until(rest, "]", 1), 1),
            '-' if rest.starts_with("--") => (until(rest, "\n", 2), 0),
            '/' if rest.starts_with("/*") => (until(rest, "*/", 2), 0),
            c if c.is_alphanumeric() || c == '_' || c == '$' => {
                let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
                (rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()), 1)
            }
            c if c.is_whitespace() => (c.len_utf8(), 0),
            c => (c.len_utf8(), 2),
        };
        let (piece, after) = rest.split_at(length);
        pieces.push(match kind {
            1 => Piece::Word(piece),
            2 => Piece::Sign(first),
            _ => Piece::Other(piece),
        });
        rest = after;
    }
    pieces
}

/// The text with a number for each `?`, as SQLite numbers them.
fn numbered(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut greatest = 0;
    let mut known: Vec<String> = Vec::new();
    let pieces = pieces(text);
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        at += 1;
        match piece {
            Piece::Sign(sign @ ('?' | ':' | '@')) => {
                out.push(*sign);
                match (sign, pieces.get(at)) {
                    ('?', Some(Piece::Word(word))) if word.starts_with(|c: char| c.is_ascii_digit()) => {
                        greatest = greatest.max(word.parse().unwrap_or(0));
                    }
                    ('?', _) => {
                        greatest += 1;
                        out.push_str(&greatest.to_string());
                    }
                    (_, Some(Piece::Word(word))) => {
                        let name = format!("{sign}{word}");
                        if !known.contains(&name) {
                            known.push(name);
                            greatest += 1;
                        }
                    }
                    _ => {}
                }
            }
            Piece::Sign(sign) => out.push(*sign),
            Piece::Word(word) => {
                if word.starts_with('$') && !known.iter().any(|own| own == word) {
                    known.push((*word).into());
                    greatest += 1;
                }
                out.push_str(word);
            }
            Piece::Other(other) => out.push_str(other),
        }
    }
    out
}

/// The text with `LIMIT rows OFFSET first` for `LIMIT first, rows`: the parser does not tell one from the
/// other.
fn offset_last(text: &str) -> String {
    let shown = |pieces: &[Piece<'_>]| {
        let texts = pieces.iter().map(|piece| match piece {
            Piece::Word(text) | Piece::Other(text) => (*text).to_owned(),
            Piece::Sign(sign) => sign.to_string(),
        });
        texts.collect::<String>()
    };
    let pieces = pieces(text);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        at += 1;
        out.push_str(&shown(std::slice::from_ref(piece)));
        if !matches!(piece, Piece::Word(word) if word.eq_ignore_ascii_case("limit")) {
            continue;
        }
        // To the end of the text or of the parentheses around it.
        let (mut depth, mut comma, mut end) = (0, None, at);
        while let Some(piece) = pieces.get(end) {
            match piece {
                Piece::Sign('(') => depth += 1,
                Piece::Sign(')') if depth == 0 => break,
                Piece::Sign(')') => depth -= 1,
                Piece::Sign(',') if depth == 0 => comma = Some(end),
                _ => {}
            }
            end += 1;
        }
        if let Some(comma) = comma {
            let part = |from: usize, to: usize| offset_last(&shown(pieces.get(from..to).unwrap_or_default()));
            out.push_str(&format!("{} OFFSET {}", part(comma + 1, end), part(at, comma)));
            at = end;
        }
    }
    out
}

/// The text with its double quotes as backticks. SQLite takes a name in double quotes for a text where no
/// column is called so, which may be one of the query around a part of it.
pub fn never_texts(text: &str) -> String {
    let shown = |piece: Piece<'_>| match piece {
        Piece::Word(word) if word.starts_with('"') => format!("`{}`", unquoted(word).replace('`', "``")),
        Piece::Word(text) | Piece::Other(text) => text.to_owned(),
        Piece::Sign(sign) => sign.to_string(),
    };
    pieces(text).into_iter().map(shown).collect()
}

/// Adds the words of a text, in lower case; `*` where it asks for all columns.
pub fn words(text: &str, out: &mut HashSet<String>) {
    let mut before = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Word(word) => {
                before = unquoted(word).to_lowercase();
                if before == "natural" {
                    out.insert("*".into());
                }
                out.insert(before.clone());
            }
            Piece::Sign(sign) => {
                if sign == '*' && matches!(before.as_str(), "select" | "distinct" | "all" | "," | ".") {
                    out.insert("*".into());
                }
                before = sign.into();
            }
            Piece::Other(_) => {}
        }
    }
}

/// How often each word, in lower case, stands in a text.
pub fn uses(text: &str) -> HashMap<String, usize> {
    let mut out = HashMap::new();
    for piece in pieces(text) {
        if let Piece::Word(word) = piece {
            *out.entry(unquoted(word).to_lowercase()).or_insert(0) += 1;
        }
    }
    out
}

/// The query of a text.
pub fn parse<'b>(room: &'b bumpalo::Bump, text: &str) -> Result<&'b Select<'b>> {
    match first(room, text)? {
        Stmt::Select(select) => Ok(select),
        _ => Err(Error::new("columnar_query takes a SELECT")),
    }
}

/// The query of a view, and the names that the view gives to its columns.
pub fn parse_view<'b>(room: &'b bumpalo::Bump, text: &str) -> Result<(&'b Select<'b>, Option<Vec<String>>)> {
    match first(room, text)? {
        Stmt::CreateView { select, columns, .. } => {
            let names =
                columns.map(|columns| columns.iter().map(|column| unquoted(column.col_name.0)).collect());
            Ok((select, names))
        }
        _ => Err(unsupported("this view")),
    }
}

fn first<'b>(room: &'b bumpalo::Bump, text: &str) -> Result<Stmt<'b>> {
    let text = room.alloc_str(text);
    let mut parser = Parser::new(room, text.as_bytes());
    match parser.next() {
        Ok(Some(Cmd::Stmt(statement))) => match parser.next() {
            Ok(None) => Ok(statement),
            _ => Err(Error::new("columnar_query takes one statement")),
        },
        Ok(_) => Err(Error::new("columnar_query takes a SELECT")),
        Err(error) => Err(unsupported(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::{numbered, offset_last, words};
    use std::collections::HashSet;

    #[test]
    fn parameters_get_the_numbers_that_sqlite_gives() {
        assert_eq!(numbered("a = ? AND b = ?"), "a = ?1 AND b = ?2");
        assert_eq!(numbered("? ?5 ?"), "?1 ?5 ?6");
        assert_eq!(
            numbered("'?' || ? -- ?\n || \"?\" || :x || ? || :x || ?"),
            "'?' || ?1 -- ?\n || \"?\" || :x || ?3 || :x || ?4"
        );
    }

    #[test]
    fn limits_say_first_what_is_wanted() {
        assert_eq!(offset_last("x LIMIT 5, 3"), "x LIMIT 3 OFFSET  5");
        assert_eq!(offset_last("x LIMIT 5 OFFSET 3"), "x LIMIT 5 OFFSET 3");
        assert_eq!(offset_last("(x LIMIT f(1, 2), 3), y"), "(x LIMIT 3 OFFSET  f(1, 2)), y");
    }

    #[test]
    fn a_star_is_told_from_a_product() {
        let of = |text: &str| {
            let mut out = HashSet::new();
            words(text, &mut out);
            out
        };
        assert!(!of("SELECT count(*), a * b FROM t").contains("*"));
        assert!(of("SELECT * FROM t").contains("*"));
        assert!(of("SELECT a, t.* FROM t").contains("*"));
        assert!(of("SELECT \"A b\" FROM t").contains("a b"));
    }
}
