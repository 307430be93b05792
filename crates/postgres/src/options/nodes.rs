//! Copying and building the few parse nodes the options need.

use pgrx::pg_sys::{self, List, Node, NodeTag};
use std::ffi::{CStr, CString, c_void};

/// A list of pointers; NIL for none.
pub fn list<T>(items: impl IntoIterator<Item = *mut T>) -> *mut List {
    let mut list: *mut List = std::ptr::null_mut();
    for item in items {
        // SAFETY: the list made here takes any pointer.
        list = unsafe { pg_sys::lappend(list, item.cast::<c_void>()) };
    }
    list
}

/// A deep copy in the current memory context.
///
/// # Safety
/// A valid node.
pub unsafe fn copy<T>(node: *const T) -> *mut T {
    pg_sys::copyObjectImpl(node.cast()).cast()
}

/// The C string at `pointer`, owned; none for a null pointer.
///
/// # Safety
/// A string that ends with a zero byte, or null.
pub unsafe fn owned(pointer: *const std::ffi::c_char) -> Option<CString> {
    (!pointer.is_null()).then(|| CStr::from_ptr(pointer).to_owned())
}

/// The name of an option, as an element of a statement's list.
pub fn option(name: &CStr) -> *mut pg_sys::DefElem {
    // SAFETY: a new node; the server keeps the copy of the name.
    unsafe { pg_sys::makeDefElem(pg_sys::pstrdup(name.as_ptr()), std::ptr::null_mut::<Node>(), -1) }
}

/// One sub-command of ALTER TABLE that sets or resets options.
pub fn alter_command(kind: pg_sys::AlterTableType::Type, options: *mut List) -> *mut pg_sys::AlterTableCmd {
    let size = size_of::<pg_sys::AlterTableCmd>();
    // SAFETY: a zeroed node is what the server's own start as.
    unsafe {
        let command = pg_sys::palloc0(size).cast::<pg_sys::AlterTableCmd>();
        (*command).type_ = NodeTag::T_AlterTableCmd;
        (*command).subtype = kind;
        (*command).def = options.cast();
        command
    }
}
