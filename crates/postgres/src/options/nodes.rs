//! Reads and builds the few parse nodes that the options need.

use pgrx::pg_sys::{self, List, Node, NodeTag};
use std::ffi::{CStr, CString, c_void};

/// The pointers of a list; empty for NIL.
pub unsafe fn pointers<T>(list: *const List) -> Vec<*mut T> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: a List of pointers holds `length` cells.
    let count = usize::try_from((*list).length).unwrap_or(0);
    (0..count).map(|i| (*(*list).elements.add(i)).ptr_value.cast::<T>()).collect()
}

/// A list of pointers; NIL for none.
pub unsafe fn list<T>(items: &[*mut T]) -> *mut List {
    let mut list: *mut List = std::ptr::null_mut();
    for item in items {
        list = pg_sys::lappend(list, item.cast::<c_void>());
    }
    list
}

/// The node's tag; `T_Invalid` for a null pointer.
pub unsafe fn tag(node: *const Node) -> NodeTag {
    if node.is_null() { NodeTag::T_Invalid } else { (*node).type_ }
}

/// A deep copy in the current memory context.
pub unsafe fn copy<T>(node: *const T) -> *mut T {
    pg_sys::copyObjectImpl(node.cast()).cast()
}

/// The C string at `pointer`, owned; none for a null pointer.
pub unsafe fn owned(pointer: *const std::ffi::c_char) -> Option<CString> {
    (!pointer.is_null()).then(|| CStr::from_ptr(pointer).to_owned())
}

/// `name` or `name = value` as an option of a statement.
pub unsafe fn option(name: &CStr, value: Option<&CStr>) -> *mut pg_sys::DefElem {
    let argument = match value {
        Some(text) => pg_sys::makeString(pg_sys::pstrdup(text.as_ptr())).cast::<Node>(),
        None => std::ptr::null_mut(),
    };
    pg_sys::makeDefElem(pg_sys::pstrdup(name.as_ptr()), argument, -1)
}

/// One sub-command of ALTER TABLE that sets or resets options.
pub unsafe fn alter_command(
    kind: pg_sys::AlterTableType::Type,
    options: *mut List,
) -> *mut pg_sys::AlterTableCmd {
    let size = size_of::<pg_sys::AlterTableCmd>();
    let command = pg_sys::palloc0(size).cast::<pg_sys::AlterTableCmd>();
    (*command).type_ = NodeTag::T_AlterTableCmd;
    (*command).subtype = kind;
    (*command).def = options.cast();
    command
}
