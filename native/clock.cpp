// SPDX-License-Identifier: Apache-2.0
// Implements clock.hpp on clock_gettime(2) and clock_nanosleep(2).
#include "clock.hpp"

#include <cerrno>
#include <ctime>
#include <system_error>

namespace pybench {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr int kAnchorBrackets = 5;  // one preemption spoils one bracket; five in a row do not happen

std::int64_t read_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * kNanosecondsPerSecond + now.tv_nsec;
}

}  // namespace

std::int64_t monotonic_raw_ns() { return read_ns(CLOCK_MONOTONIC_RAW); }

RealtimeAnchor anchor_realtime() {
  RealtimeAnchor best{0, 0, INT64_MAX};
  for (int bracket = 0; bracket < kAnchorBrackets; ++bracket) {
    const std::int64_t before = monotonic_raw_ns();
    const std::int64_t realtime = read_ns(CLOCK_REALTIME);
    const std::int64_t after = monotonic_raw_ns();
    const std::int64_t half_width = (after - before + 1) / 2;
    if (half_width < best.uncertainty_ns) best = {before + half_width, realtime, half_width};
  }
  return best;
}

bool sleep_until_ns(std::int64_t deadline_ns) {
  // clock_nanosleep refuses CLOCK_MONOTONIC_RAW, so the remainder is slept on CLOCK_MONOTONIC. The two differ by at
  // most 500 ppm, so one or two rounds end it.
  for (std::int64_t left = deadline_ns - monotonic_raw_ns(); left > 0; left = deadline_ns - monotonic_raw_ns()) {
    const timespec duration{static_cast<time_t>(left / kNanosecondsPerSecond),
                            static_cast<long>(left % kNanosecondsPerSecond)};
    const int failure = clock_nanosleep(CLOCK_MONOTONIC, 0, &duration, nullptr);
    if (failure == EINTR) return false;
    if (failure != 0) throw std::system_error(failure, std::generic_category(), "clock_nanosleep");
  }
  return true;
}

}  // namespace pybench
