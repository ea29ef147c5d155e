// SPDX-License-Identifier: Apache-2.0
//! The instructions of each x86-64 level, written down once: what a function is compiled for and what the machine is
//! asked for cannot drift apart.

/// `instructions! { avx2 compiled fn ... }` compiles a function for a level, `instructions!(avx2 detected)` asks whether
/// this machine has all of it. AVX-512 is beside AVX2, so that its functions may use those of that level.
///
/// A function with a long body is better off with a short one around it here: rustfmt passes over what a macro holds.
macro_rules! instructions {
    (avx2 $purpose:ident $($code:tt)*) => {
        $crate::simd::instructions::instructions! { @beside_avx2 [] $purpose $($code)* }
    };
    (avx512 $purpose:ident $($code:tt)*) => {
        $crate::simd::instructions::instructions! {
            @beside_avx2 ["avx512f" "avx512bw" "avx512vl" "avx512vbmi2"] $purpose $($code)*
        }
    };
    (@beside_avx2 [$($more:tt)*] $purpose:ident $($code:tt)*) => {
        $crate::simd::instructions::instructions! {
            @$purpose ["avx2" "bmi1" "bmi2" "lzcnt" "popcnt" $($more)*] $($code)*
        }
    };
    (@compiled [$($feature:tt)+] $($code:tt)+) => {
        $(#[target_feature(enable = $feature)])+
        $($code)+
    };
    (@detected [$($feature:tt)+]) => {
        $(std::arch::is_x86_feature_detected!($feature))&&+
    };
}

pub(crate) use instructions;
