//! The guard of callbacks below which users' expressions run: an ERROR passes with all its fields.
//!
//! pgrx turns a server ERROR into a panic and back, so that Rust's frames unwind. Of the ERROR it keeps a
//! known SQLSTATE, the message, detail and hint. It loses the rest:
//! - the names of schema, table, column, data type and constraint
//! - positions
//! - SQLSTATEs that users made up
//! - the CONTEXT lines of what ran inside
//!
//! [`guarded`] carries these across. Its frame stands in the server's stack of error contexts, which the
//! server walks whenever an ERROR is raised. So the frame is called twice: when the ERROR is first raised it
//! copies the fields, and when pgrx raises it anew it puts them back. The frame tells the two calls apart by
//! who would catch the ERROR: code inside the guard at the first, the guard's caller at the second.
//!
//! Invariant: the frame owns nothing that a longjmp would leak except its copy, which the second call takes.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use pgrx::pg_sys::{self, ErrorContextCallback, ErrorData};

use super::critical;

mod c {
    use std::ffi::{c_char, c_int};

    use pgrx::pg_sys::ErrorData;
    unsafe extern "C-unwind" {
        pub fn CopyErrorData() -> *mut ErrorData;
        pub fn FreeErrorData(edata: *mut ErrorData);
        pub fn err_generic_string(field: c_int, text: *const c_char) -> c_int;
        pub fn errcontext_msg(format: *const c_char, ...) -> c_int;
        pub fn errdetail_log(format: *const c_char, ...) -> c_int;
        pub fn errcode(code: c_int) -> c_int;
        pub fn geterrcode() -> c_int;
        pub fn errposition(position: c_int) -> c_int;
        pub fn internalerrposition(position: c_int) -> c_int;
        pub fn internalerrquery(query: *const c_char) -> c_int;
    }
}

/// Fields of an ERROR that are strings of their own, by the letters of the protocol.
const NAMES: [u8; 5] = *b"stcdn";

/// What pgrx does not carry.
struct Fields {
    sqlerrcode: c_int,
    message: Option<CString>,
    names: [Option<CString>; NAMES.len()],
    context: Option<CString>,
    detail_log: Option<CString>,
    query: Option<CString>,
    query_position: c_int,
    position: c_int,
}

impl Fields {
    unsafe fn of(error: &ErrorData) -> Self {
        // SAFETY: fields are terminated strings or null.
        let text =
            |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text).to_owned() });
        Self {
            sqlerrcode: error.sqlerrcode,
            message: text(error.message),
            names: [
                text(error.schema_name),
                text(error.table_name),
                text(error.column_name),
                text(error.datatype_name),
                text(error.constraint_name),
            ],
            context: text(error.context),
            detail_log: text(error.detail_log),
            query: text(error.internalquery),
            query_position: error.internalpos,
            position: error.cursorpos,
        }
    }

    /// Adds these fields to the ERROR that is being raised.
    unsafe fn put(&self) {
        // SAFETY: called while the server raises an ERROR; it copies the strings.
        unsafe {
            // pgrx turns a code that is not in its list into XX000.
            c::errcode(self.sqlerrcode);
            for (field, name) in NAMES.iter().zip(&self.names) {
                if let Some(name) = name {
                    c::err_generic_string(c_int::from(*field), name.as_ptr());
                }
            }
            if let Some(query) = &self.query {
                c::internalerrquery(query.as_ptr());
                c::internalerrposition(self.query_position);
            }
            if self.position > 0 {
                c::errposition(self.position);
            }
            if let Some(detail) = &self.detail_log {
                c::errdetail_log(c"%s".as_ptr(), detail.as_ptr());
            }
            if let Some(context) = &self.context {
                c::errcontext_msg(c"%s".as_ptr(), context.as_ptr());
            }
        }
    }
}

/// One guarded call, on the stack of the thread and in the server's stack of error contexts.
struct Frame {
    /// Who catches an ERROR that the guard raises.
    outside: *mut pg_sys::sigjmp_buf,
    fields: *mut Fields,
}

/// Called by the server for each message, innermost frame first.
unsafe extern "C-unwind" fn walk(frame: *mut c_void) {
    // SAFETY: the frame is on the stack as long as it is in the server's list; what is copied is freed at
    // once, in a context that errors leave alone.
    unsafe {
        let frame = &mut *frame.cast::<Frame>();
        // In a critical section there is no ERROR to keep, and nothing may be allocated. 18 logs there what
        // an I/O has come to.
        if critical::is_inside() {
            return;
        }
        if c::geterrcode() == pg_sys::errcodes::PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as c_int {
            return;
        }
        let before = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
        let error = c::CopyErrorData();
        pg_sys::CurrentMemoryContext = before;
        let raised = (*error).elevel >= pgrx::PgLogLevel::ERROR as c_int;
        if raised && std::ptr::eq(pg_sys::PG_exception_stack, frame.outside) {
            if let Some(fields) = take(frame) {
                // If the server's ERROR was caught inside and an error of our own followed, that error must
                // not get its fields.
                let message = fields.message.as_deref().unwrap_or_default();
                if !(*error).message.is_null() && CStr::from_ptr((*error).message) == message {
                    fields.put();
                }
            }
        } else if raised {
            drop(take(frame));
            frame.fields = Box::into_raw(Box::new(Fields::of(&*error)));
        }
        c::FreeErrorData(error);
    }
}

unsafe fn take(frame: &mut Frame) -> Option<Box<Fields>> {
    let fields = std::mem::replace(&mut frame.fields, std::ptr::null_mut());
    // SAFETY: null, or from `Box::into_raw` and taken once.
    (!fields.is_null()).then(|| unsafe { Box::from_raw(fields) })
}

/// Runs `call` under pgrx's guard, so panics become ERRORs. ERRORs from below keep all their fields.
///
/// # Safety
/// Called from a callback of the server's whose frame owns nothing, on the main thread.
#[inline(always)]
pub unsafe fn guarded<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: the caller's promise. An ERROR leaves past this frame; the server then resets its list itself.
    unsafe {
        let mut frame = Frame { outside: pg_sys::PG_exception_stack, fields: std::ptr::null_mut() };
        let mut entry = ErrorContextCallback {
            previous: pg_sys::error_context_stack,
            callback: Some(walk),
            arg: (&raw mut frame).cast(),
        };
        pg_sys::error_context_stack = &raw mut entry;
        let result = super::unguarded::guarded(call);
        pg_sys::error_context_stack = entry.previous;
        drop(take(&mut frame));
        result
    }
}
