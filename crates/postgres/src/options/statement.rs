//! Sorts the options of a statement into ours and the server's, and checks ours.

use super::catalog::Settings;
use super::definitions::{self, OptionId};
use super::nodes;
use super::report::{Refusal, text};
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, DefElem, List};
use std::ffi::{CStr, CString};

/// The option of ours that the element names. Names with a namespace (toast.*) are never ours.
pub unsafe fn ours(element: *const DefElem) -> Option<OptionId> {
    if !(*element).defnamespace.is_null() || (*element).defname.is_null() {
        return None;
    }
    OptionId::find(CStr::from_ptr((*element).defname))
}

/// Does a list of options name this one?
pub unsafe fn names(options: *const List, option: OptionId) -> bool {
    nodes::pointers::<DefElem>(options).into_iter().any(|element| ours(element) == Some(option))
}

/// Refuses a name that neither we nor the server know. The server's own error would not list our options.
/// `after` are the elements that come before it in the same list.
pub unsafe fn check_known(element: *mut DefElem, after: &[*mut DefElem]) -> Result<(), Refusal> {
    if !(*element).defnamespace.is_null() || (*element).defname.is_null() {
        return Ok(());
    }
    let name = CStr::from_ptr((*element).defname);
    // The lock level of an option is "none" only for names that no kind of relation has.
    let known = pg_sys::AlterTableGetRelOptionsLockLevel(nodes::list(&[element])) != pg_sys::NoLock as i32;
    if known || name == c"oids" {
        return Ok(());
    }
    let refusal = unrecognised(name)
        .detail(format!("A colcompress table has the options {}.", definitions::all_names()));
    // A list of columns without quotes around it ends at its first comma.
    let goes_on = (*element).arg.is_null() && after.iter().any(|e| ours(*e) == Some(definitions::ORDERBY));
    Err(match goes_on {
        true => refusal
            .hint(format!("Put quotes around several columns: WITH (orderby = '..., {}').", text(name))),
        false => {
            refusal.hint("The storage parameters of heap tables, such as fillfactor, are accepted as well.")
        }
    })
}

/// The refusal of a name that no option has, in the server's words.
fn unrecognised(name: &CStr) -> Refusal {
    Refusal::new(Code::ERRCODE_INVALID_PARAMETER_VALUE, format!("unrecognized parameter \"{}\"", text(name)))
}

/// Refuses options of ours for a table of another access method. The server would refuse them, too, but could
/// not say what is missing.
pub unsafe fn refuse_ours(options: *const List, hint: &str) -> Result<(), Refusal> {
    for element in nodes::pointers::<DefElem>(options) {
        if let Some(option) = ours(element) {
            return Err(unrecognised(option.definition().name)
                .detail(format!("\"{}\" is an option of colcompress tables.", option.name()))
                .hint(hint));
        }
    }
    Ok(())
}

/// Sets an option as a statement says. An empty `orderby` means no order.
pub unsafe fn set(settings: &mut Settings, option: OptionId, element: *mut DefElem) -> Result<(), Refusal> {
    let value = value(option, element)?;
    match option == definitions::ORDERBY && value.to_bytes().trim_ascii().is_empty() {
        true => settings.reset(option),
        false => settings.set(option, value),
    }
    Ok(())
}

/// The checked value of an element of ours. An element without a value means "true", as for the server.
unsafe fn value(option: OptionId, element: *mut DefElem) -> Result<CString, Refusal> {
    let raw = if (*element).arg.is_null() {
        c"true".to_owned()
    } else {
        nodes::owned(pg_sys::defGetString(element)).unwrap_or_default()
    };
    definitions::normalise(option, &raw)
}

/// Splits the options of a CREATE statement into ours and the server's list. Ours are checked, except the
/// columns.
pub unsafe fn split_creation(options: *mut List) -> Result<(Settings, *mut List), Refusal> {
    let mut settings = Settings::default();
    let mut rest: Vec<*mut DefElem> = Vec::new();
    let mut seen: Vec<OptionId> = Vec::new();
    let elements = nodes::pointers::<DefElem>(options);
    for (at, &element) in elements.iter().enumerate() {
        let Some(option) = ours(element) else {
            check_known(element, elements.get(..at).unwrap_or_default())?;
            rest.push(element);
            continue;
        };
        if seen.contains(&option) {
            return Err(Refusal::new(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("option \"{}\" is given more than once", option.name()),
            ));
        }
        seen.push(option);
        set(&mut settings, option, element)?;
    }
    settings.check()?;
    Ok((settings, nodes::list(&rest)))
}
