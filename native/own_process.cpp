// SPDX-License-Identifier: Apache-2.0
// Implements own_process.hpp on proc_pid_status(5) and namespaces(7).
#include "own_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <sstream>

namespace pybench {
namespace {

// The first PID name space of every Linux has this inode (PROC_PID_INIT_INO, include/linux/proc_ns.h).
constexpr char kFirstNamespace[] = "pid:[4026531836]";

}  // namespace

OwnProcess OwnProcess::find(const std::string& proc) {
  OwnProcess own;
  std::ifstream status(proc + "/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream numbers(line.substr(6));
    for (std::uint32_t number = 0; numbers >> number;) own.names_.push_back(number);
  }
  char target[PATH_MAX] = {};
  const bool known = readlink((proc + "/self/ns/pid").c_str(), target, sizeof(target) - 1) > 0;
  // One number in a name space that is not the first: the outer ones are not shown.
  own.hidden_ = known && std::string(target) != kFirstNamespace && own.names_.size() < 2;
  if (own.names_.empty()) own.names_.push_back(static_cast<std::uint32_t>(getpid()));
  return own;
}

Ownership OwnProcess::of(std::uint32_t process_id, const std::vector<std::uint32_t>& listed) const {
  for (const std::uint32_t name : names_) {
    if (std::ranges::find(listed, name) == listed.end()) continue;
    // Inside a name space the inner number could be a stranger's outer one; small numbers in long lists do collide, but
    // a stranger that holds the same GPU under this very number does not.
    return process_id == name ? Ownership::kOwn : Ownership::kForeign;
  }
  return hidden_ ? Ownership::kUnknown : Ownership::kForeign;
}

}  // namespace pybench
