// SPDX-License-Identifier: Apache-2.0
// Implements core_probe.hpp.
#include "core_probe.hpp"

#include "clock.hpp"

namespace pybench {

ProbeTime probe_core() {
  constexpr int kRounds = 6000;
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  const std::int64_t begin_ns = monotonic_raw_ns();
  for (int round = 0; round < kRounds; ++round) {
    a = a * 3 + 1;
    b ^= b << 1;
    c += c >> 3;
    d = d * 5 + 1;
    e ^= e >> 7;
    f += 3;
    // Nothing of a round is computed ahead or left out.
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  }
  return {begin_ns, monotonic_raw_ns()};
}

}  // namespace pybench
