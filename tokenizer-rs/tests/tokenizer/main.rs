// SPDX-License-Identifier: Apache-2.0
//! Tests of the tokenizer through its public interface; the contract tests of the project judge it from outside.

mod boundary;
mod exactness;
mod merging;
mod refusals;
mod regex_twin;
mod scanners;
mod training;
mod twin;
