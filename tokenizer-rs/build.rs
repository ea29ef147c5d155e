// SPDX-License-Identifier: Apache-2.0
//! Says whether the compiler knows AVX-512, whose intrinsics are stable from Rust 1.89 on; older ones build without.

use std::process::Command;

const AVX512_MINOR: u32 = 89;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(has_avx512)");
    if compiler_minor().is_some_and(|minor| minor >= AVX512_MINOR) {
        println!("cargo:rustc-cfg=has_avx512");
    }
}

/// 89 of `rustc 1.89.0 (...)`.
fn compiler_minor() -> Option<u32> {
    let compiler = std::env::var_os("RUSTC")?;
    let output = Command::new(compiler).arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version.split('.').nth(1)?.parse().ok()
}
