//! Functions that SQL calls with values and that give one value.

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;
use std::rc::Rc;

use super::value::{Argument, Context};
use super::{Connection, Error, Result, module, raw};

/// A function. It gets what all functions of its kind share on a connection. Its result may be bytes, so it
/// says the result itself.
pub type Function<D> = fn(&D, &mut Context<'_>, &[Argument<'_>]) -> Result<()>;

struct Registered<D> {
    data: Rc<D>,
    function: Function<D>,
}

unsafe extern "C" fn call<D>(
    context: *mut raw::sqlite3_context,
    count: c_int,
    values: *mut *mut raw::sqlite3_value,
) {
    // SAFETY: SQLite gives all of them for this call. The data is what `register_function` gave.
    let (registered, mut context, arguments) = unsafe {
        let registered = &*raw::user_data(context).cast::<Registered<D>>();
        (registered, Context::new(context), Argument::list(count, values))
    };
    let body = || (registered.function)(&registered.data, &mut context, arguments);
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(panic) => Error::new(format!("internal error of colonnade: {}", module::panic_text(&*panic))),
    };
    context.fail(&error);
}

impl Connection {
    /// Makes a function known. It takes `arguments` values, or any number where that is negative. `flags` are
    /// SQLite's.
    pub fn register_function<D: 'static>(
        self,
        name: &CStr,
        arguments: i32,
        flags: c_int,
        data: &Rc<D>,
        function: Function<D>,
    ) -> Result<()> {
        let flags = c_int::from(raw::SQLITE_UTF8) | flags;
        let registered = Box::into_raw(Box::new(Registered { data: Rc::clone(data), function })).cast();
        let destroy = Some(module::drop_data::<Registered<D>> as unsafe extern "C" fn(*mut c_void));
        // SAFETY: SQLite lets go of the data, also where this fails.
        let code = unsafe {
            raw::create_function_v2(
                self.as_ptr(),
                name.as_ptr(),
                arguments,
                flags,
                registered,
                Some(call::<D>),
                null(),
                null(),
                destroy,
            )
        };
        match code {
            raw::SQLITE_OK => Ok(()),
            code => Err(self.last_error(code)),
        }
    }
}
