// SPDX-License-Identifier: Apache-2.0
// Whether a process that NVML lists is this one or one that it started, also inside a PID name space (a container).
//
// NVML tells PIDs as the host counts them, or as this name space does, by driver. What this process is called in the
// name spaces that its /proc can see is in /proc/self/status, NSpid. In a container with a /proc of its own that is
// only the inner number. A listed PID that differs may then be this process or a stranger, and is said to be unknown.
//
// What this process started is its own: a runtime may hold the GPU in a program of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pybench {

enum class Ownership { kForeign, kOwn, kUnknown };

class OwnProcess {
 public:
  // `proc`: where procfs is mounted.
  static OwnProcess find(const std::string& proc = "/proc");

  // `listed`: all the PIDs that NVML lists now; `process_id`: the one of them that is asked about.
  Ownership of(std::uint32_t process_id, const std::vector<std::uint32_t>& listed) const;

 private:
  bool is_descendant(std::uint32_t process_id) const;

  std::string proc_;
  std::vector<std::uint32_t> names_;  // outermost first
  bool hidden_ = false;               // an outer name space may know this process by another number
};

}  // namespace pybench
