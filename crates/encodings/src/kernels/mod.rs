//! The inner loops: unpacking bits, comparing, filling. The only folder of this crate where `unsafe` is
//! allowed.
//!
//! Each kernel is one generic body, inlined into a wrapper for each instruction set. The wrapper is picked at
//! run time. A plain build is SSE2, and the same loop compiled for AVX2 runs at twice the speed or more.
//!
//! The bodies index nothing outside their slices. Two things are unsafe: calling a wrapper for an instruction
//! set (proved by detection), and declaring appended values initialised.
#![allow(unsafe_code)]

pub(crate) mod append;
pub(crate) mod bitpack;
pub(crate) mod compare;
pub(crate) mod fill;
pub(crate) mod floats;
pub(crate) mod fsst;
pub(crate) mod hex;
pub(crate) mod levels;
pub(crate) mod rows;
pub(crate) mod scan;

/// True when the AVX2 copies of the kernels may run.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Defines a function that runs an `#[inline(always)]` body compiled for the best instruction set at hand.
macro_rules! dispatch {
    ($(#[$meta:meta])* pub(crate) fn $name:ident [$($generics:tt)*] ($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)? = $body:ident) => {
        $(#[$meta])*
        #[inline]
        pub(crate) fn $name<$($generics)*>($($arg: $type),*) $(-> $ret)? {
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
