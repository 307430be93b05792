//! The inner loops: arithmetic, comparing, choosing rows. With `row_container` the only folder of this crate
//! where `unsafe` is allowed.
//!
//! Each kernel is one generic body over slices. The body is inlined into a wrapper for each instruction set,
//! and the wrapper is picked at run time. A plain build uses SSE2; the same loop compiled for AVX2 runs at
//! twice the speed or more. The bodies index nothing outside their slices. Only the call of a wrapper for an
//! instruction set is unsafe; detection proves that the processor has it.
#![allow(unsafe_code)]

pub(crate) mod arithmetic;
pub(crate) mod blend;
pub(crate) mod compare;
pub(crate) mod words;

/// True when the AVX2 copies of the kernels may run.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Defines a function that runs an `#[inline(always)]` body compiled for the best instruction set at hand.
macro_rules! dispatch {
    ($(#[$meta:meta])* $vis:vis fn $name:ident [$($generics:tt)*] ($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)? = $body:ident) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name<$($generics)*>($($arg: $type),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
                fn avx2<$($generics)*>($($arg: $type),*) $(-> $ret)? {
                    $body($($arg),*)
                }
                if crate::kernels::has_avx2() {
                    // SAFETY: every processor with AVX2 has the other features named above (all came with
                    // Haswell and Zen), and AVX2 was just detected.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $body($($arg),*)
        }
    };
}
pub(crate) use dispatch;

/// An operand: a value for each row, or one for all.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lane<'a, T> {
    /// The same in every row.
    One(T),
    /// Row by row.
    Many(&'a [T]),
}

impl<T: Copy> Lane<'_, T> {
    /// The value of a row; None past the end.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        match self {
            Self::One(value) => Some(*value),
            Self::Many(values) => values.get(row).copied(),
        }
    }
}
