// SPDX-License-Identifier: Apache-2.0
// The one clock of every time in pybench, its anchor to realtime, and a sleep that blocks.
//
// CLOCK_MONOTONIC_RAW is used because NTP neither steps nor slews it. Realtime exists here only to place the
// timestamps that the NVIDIA driver writes (microseconds of the realtime clock) on that clock. No spinning anywhere.
#pragma once

#include <cstdint>

namespace pybench {

// CLOCK_MONOTONIC_RAW in nanoseconds.
std::int64_t monotonic_raw_ns();

// CLOCK_REALTIME read between two reads of the raw clock: the true raw time of `realtime_ns` lies within
// `monotonic_raw_ns` +- `uncertainty_ns`.
struct RealtimeAnchor {
  std::int64_t monotonic_raw_ns;
  std::int64_t realtime_ns;
  std::int64_t uncertainty_ns;

  // The raw time of another realtime reading; exact only near the anchor, because realtime may be slewed.
  std::int64_t to_raw_ns(std::int64_t other_realtime_ns) const {
    return monotonic_raw_ns + (other_realtime_ns - realtime_ns);
  }
};

// The tightest of a few brackets, since the thread may be preempted inside one.
RealtimeAnchor anchor_realtime();

// Blocks until the raw clock has reached `deadline_ns`. False when a signal came first (the caller may go on).
bool sleep_until_ns(std::int64_t deadline_ns);

}  // namespace pybench
