// SPDX-License-Identifier: Apache-2.0
// How fast a core is right now: a fixed piece of integer work, timed where the iterations are.
//
// The work has six independent chains in registers, so it fills the core's integer units and touches no memory. A
// lower clock makes it take longer. So does a sibling thread of the core that another program or virtual machine uses,
// which no counter of this machine tells.
#pragma once

#include <cstdint>
#include <vector>

namespace pybench {

struct ProbeTime {
  std::int64_t begin_ns;  // raw clock
  std::int64_t end_ns;
};

// Does the work once: 5 us on a core of 2024.
ProbeTime probe_core();

// Probes at most every 10 ms, so that probing takes some 0.05 % of the time.
class CoreProbes {
 public:
  static constexpr std::int64_t kEnough_ns = 100'000;  // far longer than a probe, on any core

  // Call between two iterations. `free_ns`: until the next one is due.
  void take_turn(std::int64_t now_ns, std::int64_t free_ns) {
    if (now_ns < next_ns_ || free_ns < kEnough_ns) return;
    next_ns_ = now_ns + kInterval_ns;
    times_.push_back(probe_core());
  }
  const std::vector<ProbeTime>& times() const { return times_; }

 private:
  static constexpr std::int64_t kInterval_ns = 10'000'000;
  std::int64_t next_ns_ = 0;
  std::vector<ProbeTime> times_;
};

}  // namespace pybench
