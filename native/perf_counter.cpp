// SPDX-License-Identifier: Apache-2.0
// Implements perf_counter.hpp on perf_event_open(2).
#include "perf_counter.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace pybench {

PerfCounter::PerfCounter(std::uint32_t type, std::uint64_t config, int cpu) {
  perf_event_attr attributes{};
  attributes.type = type;
  attributes.size = sizeof(attributes);
  attributes.config = config;
  // pid -1 with a CPU: every process on it, the only way in which the RAPL events count.
  descriptor_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "perf_event_open");
}

PerfCounter::~PerfCounter() { close(descriptor_); }

std::uint64_t PerfCounter::read() const {
  std::uint64_t count = 0;
  const ssize_t got = ::read(descriptor_, &count, sizeof(count));
  if (got < 0) throw std::system_error(errno, std::generic_category(), "read of a perf event");
  if (got != static_cast<ssize_t>(sizeof(count))) {
    throw std::system_error(EIO, std::generic_category(), "short read of a perf event");
  }
  return count;
}

}  // namespace pybench
