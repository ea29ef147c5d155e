// SPDX-License-Identifier: Apache-2.0
// Implements own_process.hpp on proc_pid_status(5) and namespaces(7).
#include "own_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace pybench {
namespace {

// The first PID name space of every Linux has this inode (PROC_PID_INIT_INO, include/linux/proc_ns.h).
constexpr char kFirstNamespace[] = "pid:[4026531836]";
constexpr std::string_view kField = "NSpid:";
constexpr int kLineBytes = 4096;  // name spaces nest 32 deep at most; longer lines are other fields

// The numbers after "NSpid:", outermost first; none where the kernel is too old to tell.
std::vector<std::uint32_t> read_names(const std::string& proc) {
  std::vector<std::uint32_t> names;
  std::FILE* const status = std::fopen((proc + "/self/status").c_str(), "re");
  if (status == nullptr) return names;
  char line[kLineBytes];
  while (std::fgets(line, sizeof(line), status) != nullptr) {
    if (std::strncmp(line, kField.data(), kField.size()) != 0) continue;
    const char* at = line + kField.size();
    for (char* after = nullptr;; at = after) {
      const unsigned long number = std::strtoul(at, &after, 10);
      if (after == at) break;
      names.push_back(static_cast<std::uint32_t>(number));
    }
  }
  std::fclose(status);
  return names;
}

}  // namespace

OwnProcess OwnProcess::find(const std::string& proc) {
  OwnProcess own;
  own.names_ = read_names(proc);
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
    // Inside a name space the inner number could be a stranger's outer one. Small numbers in long lists do collide, but
    // a stranger that holds the same GPU under this very number does not.
    return process_id == name ? Ownership::kOwn : Ownership::kForeign;
  }
  return hidden_ ? Ownership::kUnknown : Ownership::kForeign;
}

}  // namespace pybench
