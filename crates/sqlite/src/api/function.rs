//! Functions that SQL calls with values and that give one value.

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;

use super::value::{Argument, Context};
use super::{Connection, Error, Result, module, raw};

/// A function. Its result may be bytes, so it says the result itself.
pub type Function = fn(&mut Context<'_>, &[Argument<'_>]) -> Result<()>;

unsafe extern "C" fn call(
    context: *mut raw::sqlite3_context,
    count: c_int,
    values: *mut *mut raw::sqlite3_value,
) {
    // SAFETY: SQLite gives all of them for this call. The data is what `register_function` gave.
    let (mut context, arguments, function) = unsafe {
        let data = raw::user_data(context);
        let function = std::mem::transmute::<*mut std::ffi::c_void, Function>(data);
        (Context::new(context), Argument::list(count, values), function)
    };
    let result = catch_unwind(AssertUnwindSafe(|| function(&mut context, &arguments)));
    let error = match result {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(panic) => Error::new(format!("internal error of colonnade: {}", module::panic_text(&*panic))),
    };
    context.fail(&error);
}

impl Connection {
    /// Makes a function known. It takes `arguments` values, or any number where that is negative.
    /// `flags` are SQLite's.
    pub fn register_function(
        self,
        name: &CStr,
        arguments: i32,
        flags: c_int,
        function: Function,
    ) -> Result<()> {
        let flags = c_int::from(raw::SQLITE_UTF8) | flags;
        // SAFETY: the function is there as long as the library.
        let code = unsafe {
            raw::create_function_v2(
                self.as_ptr(),
                name.as_ptr(),
                arguments,
                flags,
                function as *mut std::ffi::c_void,
                Some(call),
                null(),
                null(),
                None,
            )
        };
        match code {
            raw::SQLITE_OK => Ok(()),
            code => Err(self.last_error(code)),
        }
    }
}
