//! Functions of text.
//!
//! `query` counts characters as UTF-8, so nothing is translated in a database of another encoding. Invariant:
//! where a function looks at equality or at letters, the collation is one for which `query`'s rule holds.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};
use query::{CaseRule, Function};
use vector::LogicalType::{self, Bool, Int32, Text};

use super::super::{decline, types};
use super::Known;
use crate::convert::varlena;
use crate::host::catalogs;
use crate::host::collation::has_ascii_letters;
use crate::host::encoding;
use crate::host::tree::List;
use crate::vectorised::translated::Reason;

const ONE: &[LogicalType] = &[Text];
const TWO: &[LogicalType] = &[Text, Text];

/// The function of `query` for a function of the server over text, and whether its verdict is turned round.
pub fn known(oid: u32, collation: Oid) -> Result<Option<(Known, bool)>, Reason> {
    use pg_sys as p;
    let trim = |start, end| Function::Trim { start, end };
    let (function, takes, gives): (_, &'static [LogicalType], _) = match oid {
        p::F_TEXTLIKE
        | p::F_LIKE_TEXT_TEXT
        | p::F_TEXTNLIKE
        | p::F_NOTLIKE_TEXT_TEXT
        | p::F_BPCHARLIKE
        | p::F_BPCHARNLIKE => (Function::Like, TWO, Bool),
        p::F_TEXTICLIKE | p::F_TEXTICNLIKE => (Function::ILike(case_rule(collation)?), TWO, Bool),
        p::F_STARTS_WITH => (Function::StartsWith, TWO, Bool),
        p::F_TEXTLEN | p::F_LENGTH_TEXT | p::F_CHAR_LENGTH_TEXT | p::F_CHARACTER_LENGTH_TEXT => {
            (Function::Length, ONE, Int32)
        }
        p::F_OCTET_LENGTH_TEXT => (Function::OctetLength, ONE, Int32),
        p::F_LOWER_TEXT => (Function::Lower(case_rule(collation)?), ONE, Text),
        p::F_UPPER_TEXT => (Function::Upper(case_rule(collation)?), ONE, Text),
        p::F_SUBSTR_TEXT_INT4
        | p::F_SUBSTR_TEXT_INT4_INT4
        | p::F_SUBSTRING_TEXT_INT4
        | p::F_SUBSTRING_TEXT_INT4_INT4 => (Function::Substring, &[Text, Int32, Int32], Text),
        p::F_POSITION_TEXT_TEXT | p::F_STRPOS => (Function::Position, TWO, Int32),
        p::F_SPLIT_PART => (Function::SplitPart, &[Text, Text, Int32], Text),
        p::F_REGEXP_REPLACE_TEXT_TEXT_TEXT => (Function::RegexpReplace, &[Text, Text, Text], Text),
        p::F_REPLACE => (Function::Replace, &[Text, Text, Text], Text),
        p::F_LTRIM_TEXT | p::F_LTRIM_TEXT_TEXT => (trim(true, false), TWO, Text),
        // A char(n) as text loses the blanks at its end.
        p::F_RTRIM_TEXT | p::F_RTRIM_TEXT_TEXT | p::F_TEXT_BPCHAR => (trim(false, true), TWO, Text),
        p::F_BTRIM_TEXT | p::F_BTRIM_TEXT_TEXT => (trim(true, true), TWO, Text),
        p::F_TEXTCAT => (Function::Concat, TWO, Text),
        p::F_LEFT => (Function::Left, &[Text, Int32], Text),
        p::F_RIGHT => (Function::Right, &[Text, Int32], Text),
        _ => return Ok(None),
    };
    if !encoding::is_utf8() {
        return decline("text that is not UTF-8");
    }
    let compares = matches!(
        function,
        Function::Like
            | Function::ILike(_)
            | Function::StartsWith
            | Function::Position
            | Function::SplitPart
            | Function::Replace
            | Function::RegexpReplace
    );
    if compares && !types::is_deterministic(collation) {
        return decline("non-deterministic collation");
    }
    let negated =
        matches!(oid, p::F_TEXTNLIKE | p::F_NOTLIKE_TEXT_TEXT | p::F_BPCHARNLIKE | p::F_TEXTICNLIKE);
    Ok(Some((Known { function, takes, gives }, negated)))
}

/// Whether a call of `regexp_replace` with these arguments has a pattern and a replacement that `query`
/// understands.
pub fn is_known_regexp(args: List<'_>) -> bool {
    let text = |at: usize| {
        let value = args.get(at)?.as_a::<pg_sys::Const>()?;
        // SAFETY: both are texts.
        (!value.constisnull).then(|| unsafe { varlena::bytes_of(value.constvalue) })
    };
    matches!((text(1), text(2)), (Some(pattern), Some(with)) if query::is_known_regexp(&pattern, &with))
}

/// How letters change their case under a collation.
fn case_rule(collation: Oid) -> Result<CaseRule, Reason> {
    if !types::is_deterministic(collation) {
        return decline("non-deterministic collation");
    }
    // SAFETY: catalog look-ups, guarded so that an ERROR unwinds; the name is the server's.
    unsafe {
        if has_ascii_letters(collation) {
            return Ok(CaseRule::Ascii);
        }
        let of_library = matches!(catalogs::locale(collation), catalogs::Locale::C(_));
        if collation != pg_sys::DEFAULT_COLLATION_OID || !of_library {
            return decline("letters by another locale than the database's");
        }
    }
    let name = process_locale().to_ascii_lowercase();
    match ["tr", "az", "lt"].iter().any(|language| name.starts_with(language)) {
        true => decline("letters of a language with rules of its own"),
        false => Ok(CaseRule::Locale),
    }
}

/// The locale of letters that the process runs under.
fn process_locale() -> String {
    unsafe extern "C" {
        fn setlocale(category: std::ffi::c_int, locale: *const std::ffi::c_char) -> *const std::ffi::c_char;
    }
    /// LC_CTYPE of Linux.
    const LC_CTYPE: std::ffi::c_int = 0;
    // SAFETY: asks only; the string is the library's.
    unsafe {
        let name = setlocale(LC_CTYPE, std::ptr::null());
        if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
    }
}
