//! Lists, maps and structs as text: as JSON, or as PostgreSQL's input functions of arrays and composite types
//! read them.

use std::fmt::Write;

use super::nested::{Nested, Node, Shape};
use super::records::{Entries, contradiction, too_much};
use crate::{Error, FieldKind, Result, text};

/// What text values become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON: maps are objects, and bytes, dates, times and reals that are no numbers are strings. All other
    /// text is as `to_json` of the server writes it, in UTC.
    Json,
    /// `{1,2}` for a list, `(1,2)` for a struct. A map is a list of keys and values.
    Literal,
}

/// Rows that are put together.
pub struct Text<'a> {
    nested: &'a Nested,
    columns: Vec<Entries>,
    form: Form,
    /// The value of the row, as far as it is written.
    out: String,
    /// Bytes that it may have.
    most: usize,
    /// Room for single values.
    value: String,
}

impl<'a> Text<'a> {
    pub const fn new(nested: &'a Nested, columns: Vec<Entries>, form: Form) -> Self {
        Self { nested, columns, form, out: String::new(), most: 0, value: String::new() }
    }

    /// The value of the next row, of `most` bytes. None: NULL.
    ///
    /// # Errors
    /// `Malformed` where columns contradict each other, `Unsupported` for a value that is too long.
    pub fn row(&mut self, most: usize) -> Result<Option<&str>> {
        if self.columns.iter().any(|column| column.repetition() != Some(0)) {
            return Err(contradiction());
        }
        self.out.clear();
        self.most = most;
        let nested = self.nested;
        let is_there = match self.form {
            Form::Json => self.json(&nested.root)?,
            Form::Literal => self.literal(&nested.root)?,
        };
        Ok(is_there.then_some(self.out.as_str()))
    }

    /// After the last row: all entries were read.
    pub fn finish(&self) -> Result<()> {
        match self.columns.iter().all(|column| column.repetition().is_none()) {
            true => Ok(()),
            false => Err(contradiction()),
        }
    }

    fn columns_of(&mut self, node: &Node) -> &mut [Entries] {
        let first = self.nested.root.leaves.start;
        let places = node.leaves.start.saturating_sub(first)..node.leaves.end.saturating_sub(first);
        self.columns.get_mut(places).unwrap_or_default()
    }

    /// Whether a part is there: its next entry has this level at least. All its columns have to say the same.
    fn has(&mut self, node: &Node, level: i16) -> Result<bool> {
        let columns = self.columns_of(node);
        let first = columns.first().ok_or_else(contradiction)?.definition()?;
        let is_there = first >= level;
        for column in &*columns {
            let own = column.definition()?;
            if (own >= level) != is_there || (!is_there && own != first) {
                return Err(contradiction());
            }
        }
        if !is_there {
            columns.iter_mut().for_each(Entries::pass);
        }
        Ok(is_there)
    }

    /// Whether the list of this element goes on.
    fn goes_on(&mut self, element: &Node) -> Result<bool> {
        let goes_on = |column: &Entries| match column.repetition() {
            Some(level) if level > element.repetition => Err(contradiction()),
            level => Ok(level == Some(element.repetition)),
        };
        let columns = self.columns_of(element);
        let first = goes_on(columns.first().ok_or_else(contradiction)?)?;
        for column in &*columns {
            if goes_on(column)? != first {
                return Err(contradiction());
            }
        }
        Ok(first)
    }

    /// What single values of a column are, and the next of them as text in `value`.
    fn next_value(&mut self, node: &Node) -> Result<FieldKind> {
        if self.out.len() > self.most {
            return Err(too_much());
        }
        let at = node.leaves.start.saturating_sub(self.nested.root.leaves.start);
        let (Some(column), Some(leaf)) = (self.columns.get_mut(at), self.nested.leaves().get(at)) else {
            return Err(contradiction());
        };
        let row = column.take()?;
        self.value.clear();
        text::append(&column.values, row, &leaf.declared, &mut self.value)?;
        Ok(leaf.field.kind)
    }

    /// Appends a value as JSON. False: it is NULL, and nothing was appended.
    fn json(&mut self, node: &Node) -> Result<bool> {
        if !self.has(node, node.definition)? {
            return Ok(false);
        }
        match &node.shape {
            Shape::Value => {
                let kind = self.next_value(node)?;
                self.json_value(kind);
            }
            Shape::Struct(parts) => {
                for (at, (name, part)) in parts.iter().enumerate() {
                    self.out.push(if at == 0 { '{' } else { ',' });
                    quote_json(name, &mut self.out);
                    self.out.push(':');
                    self.json_or_null(part)?;
                }
                self.out.push('}');
            }
            Shape::List(element) => {
                self.out.push('[');
                if self.has(node, node.definition + 1)? {
                    loop {
                        self.json_or_null(element)?;
                        if !self.goes_on(element)? {
                            break;
                        }
                        self.out.push(',');
                    }
                }
                self.out.push(']');
            }
            Shape::Map(key, value) => {
                self.out.push('{');
                if self.has(node, node.definition + 1)? {
                    loop {
                        if !self.has(key, key.definition)? {
                            return Err(Error::Malformed("a map with a key that is NULL".into()));
                        }
                        self.next_value(key)?;
                        quote_json(&self.value, &mut self.out);
                        self.out.push(':');
                        self.json_or_null(value)?;
                        if self.goes_on(key)? != self.goes_on(value)? {
                            return Err(contradiction());
                        }
                        if !self.goes_on(key)? {
                            break;
                        }
                        self.out.push(',');
                    }
                }
                self.out.push('}');
            }
        }
        Ok(true)
    }

    fn json_or_null(&mut self, node: &Node) -> Result<()> {
        if !self.json(node)? {
            self.out.push_str("null");
        }
        // What has no values grows, too.
        if self.out.len() > self.most { Err(too_much()) } else { Ok(()) }
    }

    fn json_value(&mut self, kind: FieldKind) {
        let Self { out, value, .. } = self;
        let is_whole = match kind {
            FieldKind::Integer { .. } | FieldKind::Unsigned | FieldKind::Decimal { .. } | FieldKind::Bool => {
                true
            }
            // JSON stays what it is.
            FieldKind::Json => true,
            // NaN and infinities are none.
            FieldKind::Real { .. } => value.ends_with(|last: char| last.is_ascii_digit()),
            _ => false,
        };
        match kind {
            _ if is_whole => out.push_str(value),
            FieldKind::Timestamp { .. } => {
                out.push('"');
                // As ISO 8601 has it.
                let (date, time) = value.split_once(' ').unwrap_or((value, ""));
                let _ = write!(out, "{date}T{}", time.replacen("+00", "+00:00", 1));
                out.push('"');
            }
            _ => quote_json(value, out),
        }
    }

    /// Appends a value as the server's input functions read it. False: it is NULL, and nothing was appended.
    fn literal(&mut self, node: &Node) -> Result<bool> {
        if !self.has(node, node.definition)? {
            return Ok(false);
        }
        match &node.shape {
            Shape::Value => {
                self.next_value(node)?;
                self.out.push_str(&self.value);
            }
            Shape::Struct(parts) => self.record(parts.iter().map(|(_, part)| &**part))?,
            // Lists in lists are dimensions of one array.
            Shape::List(element) if matches!(element.shape, Shape::List(_) | Shape::Map(..)) => {
                let (mut lists, mut nulls) = (0, 0);
                self.list(node, element, |text| {
                    let is_there = text.literal(element)?;
                    *if is_there { &mut lists } else { &mut nulls } += 1;
                    Ok(is_there)
                })?;
                // The server refuses lists that are NULL beside other lists. Alone it takes them for values.
                if lists == 0 && nulls > 0 {
                    self.out.truncate(self.out.len() - 1);
                    self.out.push_str(",{}}");
                }
            }
            Shape::List(element) => {
                self.list(node, element, |text| text.quoted(element, quote_element))?;
            }
            Shape::Map(key, value) => {
                self.list(node, key, |text| {
                    let start = text.out.len();
                    text.record([&**key, value])?;
                    let entry = text.out.split_off(start);
                    quote_element(&entry, &mut text.out);
                    if text.goes_on(key)? != text.goes_on(value)? {
                        return Err(contradiction());
                    }
                    Ok(true)
                })?;
            }
        }
        Ok(true)
    }

    fn list(
        &mut self,
        node: &Node,
        element: &Node,
        mut append: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        self.out.push('{');
        if self.has(node, node.definition + 1)? {
            loop {
                if !append(self)? {
                    self.out.push_str("NULL");
                }
                if self.out.len() > self.most {
                    return Err(too_much());
                }
                if !self.goes_on(element)? {
                    break;
                }
                self.out.push(',');
            }
        }
        self.out.push('}');
        Ok(())
    }

    fn record<'n>(&mut self, parts: impl IntoIterator<Item = &'n Node>) -> Result<()> {
        for (at, part) in parts.into_iter().enumerate() {
            self.out.push(if at == 0 { '(' } else { ',' });
            self.quoted(part, quote_part)?;
        }
        self.out.push(')');
        Ok(())
    }

    /// A value within another one.
    fn quoted(&mut self, node: &Node, quote: fn(&str, &mut String)) -> Result<bool> {
        let start = self.out.len();
        let is_there = self.literal(node)?;
        if is_there {
            let inner = self.out.split_off(start);
            quote(&inner, &mut self.out);
        }
        // Marks are marked again at each level.
        if self.out.len() > self.most { Err(too_much()) } else { Ok(is_there) }
    }
}

/// Text as a string of JSON.
fn quote_json(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Text as an element of an array.
fn quote_element(text: &str, out: &mut String) {
    quote(text, out, |special| ['\\', special]);
}

/// Text as a part of a composite value.
fn quote_part(text: &str, out: &mut String) {
    quote(text, out, |special| [special, special]);
}

fn quote(text: &str, out: &mut String, escaped: fn(char) -> [char; 2]) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(escaped(letter)),
            other => out.push(other),
        }
    }
    out.push('"');
}
