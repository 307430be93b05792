//! Values with a length word: reads them in place, and has the server expand those that are not plain.
//!
//! Called for every varlena value of the write path. So plain and short values are decoded by hand, and only
//! compressed, external and expanded ones cost a guarded call.

use pgrx::pg_sys;
use pgrx::varlena;

/// Runs `read` on the bytes of a value without its length word, fetched and decompressed where needed.
///
/// `pointer` is a valid varlena Datum. The bytes are valid until `read` returns.
#[inline]
pub unsafe fn with_payload<R>(pointer: *mut pg_sys::varlena, read: impl FnOnce(&[u8]) -> R) -> R {
    // SAFETY: the caller vouches for the pointer; the header says how many bytes follow. A detoasted copy is
    // ours to free.
    unsafe {
        if varlena::varatt_is_1b_e(pointer) || varlena::varatt_is_4b_c(pointer) {
            let plain = pg_sys::detoast_attr(pointer);
            let result = read(plain_payload(plain));
            if plain != pointer {
                pg_sys::pfree(plain.cast());
            }
            return result;
        }
        read(plain_payload(pointer))
    }
}

/// The bytes of a value that is neither compressed nor external.
#[inline]
pub unsafe fn plain_payload<'a>(pointer: *const pg_sys::varlena) -> &'a [u8] {
    // SAFETY: as above; the caller keeps the value alive while it looks at the bytes.
    unsafe {
        let bytes = pointer.cast::<u8>();
        if varlena::varatt_is_1b(pointer) {
            std::slice::from_raw_parts(bytes.add(1), varlena::varsize_1b(pointer) - 1)
        } else {
            std::slice::from_raw_parts(bytes.add(4), varlena::varsize_4b(pointer) - 4)
        }
    }
}

/// A copy of the bytes of a variable-length datum, detoasted.
///
/// # Safety
/// The datum is a non-null variable-length value.
pub unsafe fn bytes_of(datum: pg_sys::Datum) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe { with_payload(datum.cast_mut_ptr(), <[u8]>::to_vec) }
}

/// The bytes as a value with a length word of four bytes, in the current memory.
pub fn allocate(bytes: &[u8]) -> pg_sys::Datum {
    let len = pg_sys::VARHDRSZ + bytes.len();
    // SAFETY: the memory has room for the length word and the bytes.
    unsafe {
        let place = pg_sys::palloc(len).cast::<u8>();
        varlena::set_varsize_4b(place.cast(), len as i32);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.add(pg_sys::VARHDRSZ), bytes.len());
        pg_sys::Datum::from(place)
    }
}
