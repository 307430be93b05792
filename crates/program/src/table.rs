//! Tables of words on a terminal: columns as wide as what is in them.

use std::io::Write;

use files::Result;

/// Most characters of a value. The rest is left out.
const MOST: usize = 24;

/// How a column stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Prints rows of as many cells as there are heads. Each line begins with so many blanks.
pub fn print<const N: usize>(
    out: &mut impl Write,
    blanks: usize,
    heads: [(&str, Side); N],
    rows: &[[String; N]],
) -> Result<()> {
    let mut widths = heads.map(|(head, _)| head.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let names = heads.map(|(head, _)| head.to_owned());
    for row in std::iter::once(&names).chain(rows) {
        let mut line = " ".repeat(blanks);
        for ((cell, width), (_, side)) in row.iter().zip(widths).zip(heads) {
            match side {
                Side::Left => line.push_str(&format!("{cell:width$}  ")),
                Side::Right => line.push_str(&format!("{cell:>width$}  ")),
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A value of a file, cut to what a table has room for. Characters that would steer a terminal are told by
/// their numbers.
pub fn value(text: &str) -> String {
    let mut shown = text.chars().take(MOST).map(plain).collect::<String>();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

/// A name of a file's, without characters that would steer a terminal.
pub fn name(text: &str) -> String {
    text.chars().map(plain).collect()
}

fn plain(character: char) -> String {
    match character.is_control() {
        true => character.escape_default().collect(),
        false => character.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{name, value};

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(name("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(value(&"ü".repeat(24)), "ü".repeat(24));
        assert_eq!(value(&"ü".repeat(25)), format!("{}…", "ü".repeat(24)));
    }
}
