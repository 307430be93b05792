//! The option `orderby`: its text, its columns, and what happens to it when they change.
//!
//! The text is what may follow ORDER BY if only columns of the table are named:
//! `column [ASC | DESC] [NULLS FIRST | NULLS LAST], ...`. [`parse`] reads it byte by byte in the
//! database's encoding, [`spell`] writes it back, [`resolve`] finds the columns in the catalog and checks
//! that their types can be sorted.
//!
//! Invariant: a stored text was written by [`spell`]. So a column's name is found and replaced by parsing,
//! never by searching the text.

use super::report::{Refusal, text};
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{CStr, CString};

/// One key as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedKey {
    /// The column's name, already case-folded and truncated as the server does it.
    pub column: CString,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST, or its default under DESC.
    pub nulls_first: bool,
}

/// One key as a column of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SortKey {
    /// Column number, from 1.
    pub attnum: i16,
    /// Largest first.
    pub descending: bool,
    /// NULLs before every value.
    pub nulls_first: bool,
}

enum Token {
    Word { bytes: Vec<u8>, quoted: bool },
    Comma,
    End,
}

struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Tokens<'_> {
    fn next(&mut self) -> Result<Token, String> {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace() || b == 0x0b) {
            self.at += 1;
        }
        let Some(first) = self.peek() else { return Ok(Token::End) };
        match first {
            b',' => {
                self.at += 1;
                Ok(Token::Comma)
            }
            b'"' => self.quoted(),
            b if starts_word(b) => {
                let start = self.at;
                while self.peek().is_some_and(continues_word) {
                    self.at += 1;
                }
                let bytes = self.bytes.get(start..self.at).unwrap_or_default().to_vec();
                Ok(Token::Word { bytes, quoted: false })
            }
            b => Err(format!("the character \"{}\"", char::from(b))),
        }
    }

    fn quoted(&mut self) -> Result<Token, String> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let Some(byte) = self.peek() else {
                return Err("a quoted column name without its end".into());
            };
            self.at += 1;
            if byte != b'"' {
                bytes.push(byte);
            } else if self.peek() == Some(b'"') {
                self.at += 1;
                bytes.push(b'"');
            } else if bytes.is_empty() {
                return Err("an empty column name".into());
            } else {
                return Ok(Token::Word { bytes, quoted: true });
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_word(byte: u8) -> bool {
    starts_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn is(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word { bytes, quoted: false } if bytes.eq_ignore_ascii_case(word.as_bytes()))
}

/// Reads the text of the option. The error names the first thing that does not fit.
pub fn parse(value: &CStr) -> Result<Vec<NamedKey>, Refusal> {
    parse_keys(value).map_err(|what| {
        Refusal::new(
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("invalid value for option \"orderby\": \"{}\"", text(value)),
        )
        .detail(format!("Found {what}. Allowed: {}.", super::definitions::ORDERBY.allowed()))
        .hint("Write column names as in ORDER BY; expressions, COLLATE and USING are not accepted. To remove the order, RESET (orderby).")
    })
}

fn parse_keys(value: &CStr) -> Result<Vec<NamedKey>, String> {
    let mut tokens = Tokens { bytes: value.to_bytes(), at: 0 };
    let mut keys: Vec<NamedKey> = Vec::new();
    loop {
        let column = match tokens.next()? {
            Token::Word { bytes, quoted } => fold(bytes, quoted),
            Token::Comma => return Err("a comma without a column before it".into()),
            Token::End => return Err("the end where a column is expected".into()),
        };
        if keys.iter().any(|k| k.column == column) {
            return Err(format!("column \"{}\" twice", text(&column)));
        }
        let mut token = tokens.next()?;
        let descending = is(&token, "desc");
        if descending || is(&token, "asc") {
            token = tokens.next()?;
        }
        let mut nulls_first = descending;
        if is(&token, "nulls") {
            token = tokens.next()?;
            nulls_first = is(&token, "first");
            if !nulls_first && !is(&token, "last") {
                return Err("NULLS without FIRST or LAST".into());
            }
            token = tokens.next()?;
        }
        keys.push(NamedKey { column, descending, nulls_first });
        match token {
            Token::Comma => {}
            Token::End => return Ok(keys),
            Token::Word { bytes, .. } => {
                return Err(format!("\"{}\"", String::from_utf8_lossy(&bytes)));
            }
        }
    }
}

/// Case-folds and truncates a name as the server's scanner does.
fn fold(name: Vec<u8>, quoted: bool) -> CString {
    let length = i32::try_from(name.len()).unwrap_or(i32::MAX);
    // The bytes come from a C string, so there is no NUL among them.
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: strings that end with a zero byte; a copy is shortened.
    unsafe {
        if quoted {
            let copy = pg_sys::pstrdup(name.as_ptr());
            pg_sys::truncate_identifier(copy, length, true);
            CStr::from_ptr(copy).to_owned()
        } else {
            CStr::from_ptr(pg_sys::downcase_truncate_identifier(name.as_ptr(), length, true)).to_owned()
        }
    }
}

/// Writes keys as the option's text, as short as their meaning allows.
pub fn spell(keys: &[NamedKey]) -> CString {
    let mut out: Vec<u8> = Vec::new();
    for key in keys {
        if !out.is_empty() {
            out.extend_from_slice(b", ");
        }
        // SAFETY: a string that ends with a zero byte, and so does the server's.
        let quoted = unsafe { CStr::from_ptr(pg_sys::quote_identifier(key.column.as_ptr())) };
        out.extend_from_slice(quoted.to_bytes());
        if key.descending {
            out.extend_from_slice(b" DESC");
        }
        if key.nulls_first != key.descending {
            out.extend_from_slice(if key.nulls_first { b" NULLS FIRST" } else { b" NULLS LAST" });
        }
    }
    CString::new(out).unwrap_or_default()
}

/// Finds one key's column in the catalog and checks that its type has an order.
pub fn resolve_key(table: pg_sys::Oid, key: &NamedKey) -> Result<SortKey, Refusal> {
    let (attnum, type_id) = match column(table, &key.column) {
        Some((attnum, ..)) if attnum < 0 => {
            return Err(Refusal::new(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("system column \"{}\" cannot be part of orderby", text(&key.column)),
            ));
        }
        Some((.., true)) => {
            return Err(Refusal::new(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("virtual generated column \"{}\" cannot be part of orderby", text(&key.column)),
            )
            .detail("Its values are not stored.")
            .hint("Name the columns that it is computed from."));
        }
        Some((attnum, type_id, false)) => (attnum, type_id),
        None => {
            return Err(Refusal::new(
                Code::ERRCODE_UNDEFINED_COLUMN,
                format!("column \"{}\" named by option \"orderby\" does not exist", text(&key.column)),
            )
            .hint("Option orderby takes the names of the table's own columns."));
        }
    };
    if !sortable(type_id) {
        // SAFETY: a catalog look-up, which gives a string.
        let type_name = unsafe { CStr::from_ptr(pg_sys::format_type_be(type_id)) };
        return Err(Refusal::new(
            Code::ERRCODE_UNDEFINED_FUNCTION,
            format!(
                "column \"{}\" named by option \"orderby\" has type {}, which has no default btree operator class",
                text(&key.column),
                text(type_name)
            ),
        )
        .hint("Leave the column out of orderby, or create such an operator class."));
    }
    Ok(SortKey { attnum, descending: key.descending, nulls_first: key.nulls_first })
}

/// Parses and resolves `value` for `table`; returns the stored spelling and the keys.
pub fn resolve(table: pg_sys::Oid, value: &CStr) -> Result<(CString, Vec<SortKey>), Refusal> {
    let named = parse(value)?;
    let keys = named.iter().map(|k| resolve_key(table, k)).collect::<Result<Vec<_>, _>>()?;
    Ok((spell(&named), keys))
}

/// `attgenerated` of a column that is computed when it is read (from 18 on).
const VIRTUAL: u8 = b'v';

/// Number and type of a live column, or of a system column, and whether it is a virtual one.
fn column(table: pg_sys::Oid, name: &CStr) -> Option<(i16, pg_sys::Oid, bool)> {
    // SAFETY: a catalog look-up; a tuple that was found has the catalog's columns.
    unsafe {
        // Dropped columns are not found by their old name.
        let tuple = pg_sys::SearchSysCacheAttName(table, name.as_ptr());
        if tuple.is_null() {
            return None;
        }
        let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_attribute>(tuple);
        let found = ((*form).attnum, (*form).atttypid, (*form).attgenerated as u8 == VIRTUAL);
        pg_sys::ReleaseSysCache(tuple);
        Some(found)
    }
}

fn sortable(type_id: pg_sys::Oid) -> bool {
    let flags = pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_GT_OPR;
    // SAFETY: a catalog look-up; an entry of the type cache lives as long as the session.
    let entry = unsafe { &*pg_sys::lookup_type_cache(type_id, flags as i32) };
    entry.lt_opr != pg_sys::InvalidOid && entry.gt_opr != pg_sys::InvalidOid
}

/// The operator that sorts values of a type as `key` asks.
pub fn sort_operator(kind: Oid, key: &SortKey) -> Oid {
    let mut less = Oid::INVALID;
    let mut greater = Oid::INVALID;
    // SAFETY: catalog look-ups, which may raise an ERROR.
    unsafe {
        pg_sys::get_sort_group_operators(
            kind,
            true,
            false,
            true,
            &raw mut less,
            std::ptr::null_mut(),
            &raw mut greater,
            std::ptr::null_mut(),
        );
    }
    if key.descending { greater } else { less }
}
