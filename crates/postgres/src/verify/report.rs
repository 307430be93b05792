//! The result of `engine.verify`: one row for each fault. The server keeps the rows, and spills them to disk
//! if they are many.

use std::ffi::CString;

use pgrx::pg_sys::{self, Datum, FunctionCallInfo, ItemPointerData};

/// Columns of a row. The function of version 0.1 has the first five.
const COLUMNS: usize = 6;

/// How bad a fault of this kind is: `error`, `warning` or `info`.
fn severity(kind: &str) -> &'static str {
    match kind {
        "skipped" => "info",
        // Most often VACUUM has just not freed them yet.
        "unclaimed" => "warning",
        _ => "error",
    }
}

/// Where a fault is, as far as that can be said.
#[derive(Default, Clone, Copy)]
pub struct Place {
    /// First row number of the stripe.
    pub stripe: Option<u64>,
    /// Block of the table's file.
    pub block: Option<u32>,
    /// The row.
    pub tid: Option<ItemPointerData>,
}

/// Collects faults.
pub struct Report {
    info: *mut pg_sys::ReturnSetInfo,
    context: pg_sys::MemoryContext,
    unreadable: bool,
    /// The partition that is checked, if the question was about the table above it.
    partition: Option<String>,
}

impl Report {
    /// The result of the call, still empty.
    ///
    /// # Safety
    /// The call ends after the last use of this.
    pub unsafe fn new(call: FunctionCallInfo) -> Self {
        // SAFETY: raises an ERROR where the caller cannot take a set; what is made lives in the query's
        // memory.
        unsafe {
            pg_sys::InitMaterializedSRF(call, 0);
            let context = pg_sys::AllocSetContextCreateInternal(
                pg_sys::CurrentMemoryContext,
                c"colonnade verify row".as_ptr(),
                0,
                8 * 1024,
                8 * 1024 * 1024,
            );
            Self { info: (*call).resultinfo.cast(), context, unreadable: false, partition: None }
        }
    }

    /// Begins with another table. If it is a partition, its name is given.
    pub fn begin(&mut self, partition: Option<String>) {
        self.unreadable = false;
        self.partition = partition;
    }

    /// Whether no fault was found that makes the reading of a row end in an ERROR.
    pub const fn rows_are_readable(&self) -> bool {
        !self.unreadable
    }

    /// Adds a fault.
    pub fn add(&mut self, kind: &str, place: Place, detail: impl Into<String>) {
        self.unreadable |= matches!(kind, "page" | "directory" | "stripe" | "chunk");
        // SAFETY: values live in the context that is reset below; the store copies them.
        unsafe {
            let before = pg_sys::MemoryContextSwitchTo(self.context);
            let mut tid = place.tid.unwrap_or_default();
            let mut values = [
                text(kind.to_string()),
                Datum::from(place.stripe.unwrap_or(0)),
                Datum::from(i64::from(place.block.unwrap_or(0))),
                Datum::from((&raw mut tid) as usize),
                text(match &self.partition {
                    Some(partition) => format!("partition {partition}: {}", detail.into()),
                    None => detail.into(),
                }),
                text(severity(kind).to_string()),
            ];
            let mut nulls = [false; COLUMNS];
            nulls[1] = place.stripe.is_none();
            nulls[2] = place.block.is_none();
            nulls[3] = place.tid.is_none();
            let (store, desc) = ((*self.info).setResult, (*self.info).setDesc);
            pg_sys::tuplestore_putvalues(store, desc, values.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::MemoryContextReset(self.context);
        }
    }

    /// Reports that something was not checked.
    pub fn skipped(&mut self, detail: &str) {
        self.add("skipped", Place::default(), detail)
    }
}

unsafe fn text(value: String) -> Datum {
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: a terminated string, copied.
    Datum::from(unsafe { pg_sys::cstring_to_text(value.as_ptr()) })
}
