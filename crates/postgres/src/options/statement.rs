//! Sorting the options of a statement into ours and the server's, and checking ours.

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

/// Refuses a name that neither we nor the server know; the server's own error would not list ours.
pub unsafe fn check_known(element: *mut DefElem) -> Result<(), Refusal> {
    if !(*element).defnamespace.is_null() || (*element).defname.is_null() {
        return Ok(());
    }
    let name = CStr::from_ptr((*element).defname);
    // The lock level of an option is "none" just for names that no kind of relation has.
    let known = pg_sys::AlterTableGetRelOptionsLockLevel(nodes::list(&[element])) != pg_sys::NoLock as i32;
    if known || name == c"oids" {
        return Ok(());
    }
    Err(Refusal::new(
        Code::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("unrecognized parameter \"{}\"", text(name)),
    )
    .detail(format!("A colcompress table has the options {}.", definitions::all_names()))
    .hint("The storage parameters of heap tables, such as fillfactor, are accepted as well."))
}

/// The checked value of an element of ours. An element without a value means "true", as for the server.
pub unsafe fn value(option: OptionId, element: *mut DefElem) -> Result<CString, Refusal> {
    let raw = if (*element).arg.is_null() {
        c"true".to_owned()
    } else {
        nodes::owned(pg_sys::defGetString(element)).unwrap_or_default()
    };
    definitions::normalise(option, &raw)
}

/// Splits the options of a CREATE statement: ours, checked but for the columns, and the server's list.
pub unsafe fn split_creation(options: *mut List) -> Result<(Settings, *mut List), Refusal> {
    let mut settings = Settings::default();
    let mut rest: Vec<*mut DefElem> = Vec::new();
    for element in nodes::pointers::<DefElem>(options) {
        let Some(option) = ours(element) else {
            check_known(element)?;
            rest.push(element);
            continue;
        };
        if settings.get(option).is_some() {
            return Err(Refusal::new(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("option \"{}\" is given more than once", option.name()),
            ));
        }
        settings.set(option, value(option, element)?);
    }
    settings.check()?;
    Ok((settings, nodes::list(&rest)))
}
