//! ICU's order of texts.
//!
//! Called by the translation of sort keys. The server opens a collator for each collation and keeps it for
//! good. Comparing takes the collator as constant, so ICU allows any number of threads to compare by one. The
//! library is linked to the server already, and its names end in its version.
//!
//! Invariant: texts are UTF-8.

use std::cmp::Ordering;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

/// `ucol_strcollUTF8`.
type Compare =
    unsafe extern "C" fn(*const c_void, *const c_char, i32, *const c_char, i32, *mut c_int) -> c_int;

/// An open collator.
pub struct Collator {
    collator: *const c_void,
    compare: Compare,
}
// SAFETY: it is only read, and lives as long as the process.
unsafe impl Send for Collator {}
// SAFETY: as above: ICU's functions that take a constant collator may run in several threads at once.
unsafe impl Sync for Collator {}

impl Collator {
    /// The comparison by a collator. None if the process has no such library.
    ///
    /// # Safety
    /// A `UCollator` that is never closed.
    pub unsafe fn new(collator: *const c_void) -> Option<Self> {
        Some(Self { collator, compare: (*library())? })
    }

    /// The server's order of two texts: the library's order, or the bytewise order if the library finds
    /// different texts equal.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // No text is longer than 1 GB.
        let length = |text: &[u8]| i32::try_from(text.len()).unwrap_or(i32::MAX);
        let (left, right) = (length(a), length(b));
        let mut status = 0;
        // SAFETY: the texts are of these lengths; the collator is only read.
        let verdict = unsafe {
            (self.compare)(self.collator, a.as_ptr().cast(), left, b.as_ptr().cast(), right, &raw mut status)
        };
        if status > 0 {
            // ICU is out of memory. The panic unwinds from any thread, and becomes an ERROR.
            std::panic::panic_any("ICU could not compare two texts");
        }
        verdict.cmp(&0).then_with(|| a.cmp(b))
    }
}

/// The library's function, looked up once.
fn library() -> &'static Option<Compare> {
    unsafe extern "C" {
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    /// The versions whose names are tried.
    const VERSIONS: std::ops::Range<u32> = 50..120;
    static FOUND: OnceLock<Option<Compare>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let plain = c"ucol_strcollUTF8".to_owned();
        let named = VERSIONS.filter_map(|version| CString::new(format!("ucol_strcollUTF8_{version}")).ok());
        let look = |name: &CStr| {
            // SAFETY: a look-up among the libraries that the process has; the name ends with a zero byte.
            let found = unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) };
            // SAFETY: the function of this name has this type in every version.
            (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Compare>(found) })
        };
        let mut found = std::iter::once(plain).chain(named).filter_map(|name| look(&name));
        // If there are several versions, it is not known which one opened the collators, so none is used.
        found.next().filter(|_| found.next().is_none())
    })
}
