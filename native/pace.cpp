// SPDX-License-Identifier: Apache-2.0
// Implements pace.hpp's wait.
#include "pace.hpp"

#include "clock.hpp"

namespace pybench {
namespace {

constexpr std::int64_t kSpin_ns = 200'000;             // several times Linux's timer slack of 50 us
constexpr std::int64_t kLongestSleep_ns = 50'000'000;  // so that an interrupt is seen even where no signal wakes us

}  // namespace

bool wait_for_arrival(std::int64_t deadline_ns, const Interrupted& interrupted) {
  for (std::int64_t now_ns = monotonic_raw_ns(); now_ns < deadline_ns; now_ns = monotonic_raw_ns()) {
    const std::int64_t left_ns = deadline_ns - now_ns;
    if (left_ns <= kSpin_ns) continue;
    const std::int64_t wake_ns = left_ns > kLongestSleep_ns ? now_ns + kLongestSleep_ns : deadline_ns - kSpin_ns;
    sleep_until_ns(wake_ns);  // a signal ends it early, and is looked at like the rest
    if (interrupted()) return false;
  }
  return true;
}

}  // namespace pybench
