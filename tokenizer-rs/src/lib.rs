// SPDX-License-Identifier: Apache-2.0
//! Exact byte-level BPE: the ids of Hugging Face tokenizers, without locks and without allocation on the hot path.
//!
//! A document goes through four stages, each a module:
//!
//! 1. [`special`] cuts the special tokens out of the text;
//! 2. [`word_ends`] cuts the rest into words by a rule of [`family`], with the classes of [`unicode`];
//! 3. [`cache`] remembers the ids of words seen before, in a table with a bound;
//! 4. [`merge`] computes the ids of the words that the cache does not know.
//!
//! [`model`] builds the tables from a `tokenizer.json` ([`mod@file`] is its shape) and refuses by name whatever it does
//! not implement. [`encode`] runs the stages, and [`training`] makes such a file from text. [`ffi`] is the whole C
//! boundary, described by `include/pybench_tokenizer.h`.
//!
//! Not here: other models than BPE, other splitting rules than those of [`family`], normalizers, and threads (callers
//! give each thread a worker of its own).

pub mod blocks;
pub mod byte_level;
pub mod cache;
pub mod encode;
pub mod family;
pub mod ffi;
pub mod file;
pub mod growth;
#[cfg(target_arch = "x86_64")]
pub mod learning;
pub mod long_cache;
pub mod memory;
pub mod merge;
pub mod merge_table;
pub mod model;
pub mod output;
pub mod rank_file;
pub mod reachable;
pub mod scanner;
pub mod simd;
pub mod special;
pub mod token_id;
pub mod tokenizer_json;
pub mod training;
pub mod unicode;
mod unicode_ranges;
pub mod word_ends;
pub mod words;

pub use encode::{EncodeError, Encoder};
pub use model::{LoadError, Model};
