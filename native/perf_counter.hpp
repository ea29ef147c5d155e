// SPDX-License-Identifier: Apache-2.0
// One system-wide perf event on one CPU, as perf_event_open(2) gives it: used for the RAPL energy events.
//
// It neither finds events nor scales counts: type, config and scale are read from sysfs by pybench.measure.energy.cpu.
#pragma once

#include <cstdint>

namespace pybench {

class PerfCounter {
 public:
  // Throws std::system_error (EACCES, ENOENT, ...) when the kernel does not give the event.
  PerfCounter(std::uint32_t type, std::uint64_t config, int cpu);
  ~PerfCounter();
  PerfCounter(const PerfCounter&) = delete;
  PerfCounter& operator=(const PerfCounter&) = delete;

  // The count since opening, 64 bits wide: the kernel absorbs the hardware's wraps.
  std::uint64_t read() const;

 private:
  int descriptor_;
};

}  // namespace pybench
