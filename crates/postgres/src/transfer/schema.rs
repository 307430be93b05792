//! `engine.parquet_schema(file text)`: the columns of a Parquet file, and the types that they are read as.

use std::ffi::CStr;

use files::FieldKind;
use files::parquet::columns;
use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo};

use super::statement;
use crate::host::encoding;
use crate::host::fmgr::{argument, put_row, return_null};
use crate::storage::parquet_file;

crate::sql_function!(pg_finfo_colonnade_parquet_schema);

/// A row for each column: its name, the type of PostgreSQL or NULL, and why there is none.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_parquet_schema(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the rows are of the type that the SQL declares.
    unsafe {
        let Some(name) = argument(call, 0) else { return return_null(call) };
        let name = CStr::from_ptr(pg_sys::text_to_cstring(name.cast_mut_ptr())).to_owned();
        let file = parquet_file::known(&statement::file(true, &name));
        pg_sys::InitMaterializedSRF(call, 0);
        let datum = |text: &str| Datum::from(pg_sys::cstring_to_text(encoding::from_utf8(text).as_ptr()));
        for field in file.footer.fields() {
            let declared =
                columns(std::slice::from_ref(field)).ok().and_then(|all| Some(all.first()?.declared.clone()));
            let refused = if let FieldKind::Other(what) = field.kind { Some(what) } else { None };
            let mut values = [
                datum(&field.name),
                declared.as_deref().map_or(Datum::null(), datum),
                refused.map_or(Datum::null(), datum),
            ];
            let mut nulls = [false, declared.is_none(), refused.is_none()];
            put_row(call, &mut values, &mut nulls);
        }
        Datum::from(0usize)
    }
}
