// SPDX-License-Identifier: Apache-2.0
// Units of time for the tests, which are compiled as one file.
#pragma once

#include <cstdint>

namespace pybench {

constexpr std::int64_t kMs = 1'000'000;  // in nanoseconds

}  // namespace pybench
