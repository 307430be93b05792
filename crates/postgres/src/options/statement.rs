//! Sorts the options of a statement into ours and the server's, and checks ours.

use super::access_method::AccessMethod;
use super::catalog::Settings;
use super::definitions::{self, OptionId};
use super::nodes;
use super::orderby;
use super::report::{Refusal, text};
use crate::host::tree::{List, Typed};
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, DefElem};
use std::ffi::{CStr, CString};

/// An option of a statement.
pub type Element<'a> = Typed<'a, DefElem>;

/// The option of ours that the element names. Names with a namespace (toast.*) are never ours.
pub fn ours(element: Element<'_>) -> Option<OptionId> {
    if element.namespace().is_some() {
        return None;
    }
    OptionId::find(element.name()?)
}

/// Does a list of options name this one?
pub fn names(options: List<'_, Element<'_>>, option: OptionId) -> bool {
    options.iter().any(|element| ours(element) == Some(option))
}

/// Does a list of options name one of ours?
pub fn names_any(options: List<'_, Element<'_>>) -> bool {
    options.iter().any(|element| ours(element).is_some())
}

/// Refuses an option that tables of the access method do not have. A partitioned table without one may have
/// those of any.
pub fn check_method(option: OptionId, method: Option<AccessMethod>) -> Result<(), Refusal> {
    match method.filter(|&method| !option.is_of(method)) {
        Some(method) => Err(unrecognised(option.definition().name).detail(has_options(method))),
        None => Ok(()),
    }
}

fn has_options(method: AccessMethod) -> String {
    format!("A {} table has the options {}.", method.name().to_string_lossy(), definitions::names_of(method))
}

/// Refuses a name that neither we nor the server know; the server's own error would not list ours. `before`
/// is what the same list has before it.
pub fn check_known<'a>(
    element: Element<'a>,
    mut before: impl Iterator<Item = Element<'a>>,
    method: Option<AccessMethod>,
) -> Result<(), Refusal> {
    let (None, Some(name)) = (element.namespace(), element.name()) else { return Ok(()) };
    // The lock level of an option is "none" only for names that no kind of relation has.
    // SAFETY: a list of one option.
    let level = unsafe { pg_sys::AlterTableGetRelOptionsLockLevel(nodes::list([element.as_ptr()])) };
    if level != pg_sys::NoLock as i32 || name == c"oids" {
        return Ok(());
    }
    let refusal = unrecognised(name).detail(has_options(method.unwrap_or(AccessMethod::Colcompress)));
    // A list of columns without quotes around it ends at its first comma.
    let goes_on = element.value().is_none() && before.any(|e| ours(e) == Some(definitions::ORDERBY));
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
/// not say what is missing. `hint` says it, with {} in the place of an access method that has the option.
pub fn refuse_ours(options: List<'_, Element<'_>>, hint: &str) -> Result<(), Refusal> {
    match options.iter().find_map(ours) {
        Some(option) => Err(unrecognised(option.definition().name)
            .detail(format!("\"{}\" is an option of {} tables.", option.name(), option.methods()))
            .hint(hint.replace("{}", option.usual_method()))),
        None => Ok(()),
    }
}

/// Sets an option as a statement says, whose options are `all`. An empty `orderby` means no order.
/// `pruning_column` is the order where the statement gives no `orderby`.
pub fn set(
    settings: &mut Settings,
    option: OptionId,
    element: Element<'_>,
    all: List<'_, Element<'_>>,
) -> Result<(), Refusal> {
    let value = value(option, element)?;
    let is_order = option == definitions::ORDERBY;
    if option == definitions::PRUNING_COLUMN {
        if !names(all, definitions::ORDERBY) {
            let key = orderby::NamedKey { column: value, descending: false, nulls_first: false };
            settings.set(definitions::ORDERBY, orderby::spell(&[key]));
        }
    } else if is_order && value.to_bytes().trim_ascii().is_empty() {
        settings.reset(option);
    } else {
        settings.set(option, value);
    }
    Ok(())
}

/// The option that is stored for this one.
pub fn stored_as(option: OptionId) -> OptionId {
    if option == definitions::PRUNING_COLUMN { definitions::ORDERBY } else { option }
}

/// The checked value of an element of ours. An element without a value means "true", as for the server.
fn value(option: OptionId, element: Element<'_>) -> Result<CString, Refusal> {
    let raw = match element.value() {
        None => c"true".to_owned(),
        // SAFETY: an option that has a value; the server's string of it.
        Some(_) => unsafe { nodes::owned(pg_sys::defGetString(element.as_ptr())) }.unwrap_or_default(),
    };
    definitions::normalise(option, &raw)
}

/// Splits the options of a CREATE statement into ours and the server's list. Ours are checked, except the
/// columns. They come on top of `settings`, which a partition has from its partitioned table. `method` is the
/// table's access method; a partitioned table may have none.
pub fn split_creation(
    mut settings: Settings,
    options: List<'_, Element<'_>>,
    method: Option<AccessMethod>,
) -> Result<(Settings, *mut pg_sys::List), Refusal> {
    let mut rest: Vec<*mut DefElem> = Vec::new();
    let mut seen: Vec<OptionId> = Vec::new();
    for (at, element) in options.iter().enumerate() {
        let Some(option) = ours(element) else {
            check_known(element, options.iter().take(at), method)?;
            rest.push(element.as_ptr());
            continue;
        };
        check_method(option, method)?;
        given_once(&mut seen, option)?;
        set(&mut settings, option, element, options)?;
    }
    settings.check(method.unwrap_or(AccessMethod::Colcompress))?;
    Ok((settings, nodes::list(rest)))
}

/// Refuses an option that a list has given before.
pub fn given_once(seen: &mut Vec<OptionId>, option: OptionId) -> Result<(), Refusal> {
    if seen.contains(&option) {
        return Err(Refusal::new(
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("option \"{}\" is given more than once", option.name()),
        ));
    }
    seen.push(option);
    Ok(())
}
