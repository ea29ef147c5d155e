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
constexpr std::string_view kNames = "NSpid:";  // outermost first; older kernels do not tell
constexpr std::string_view kParent = "PPid:";  // 0: outside of this name space
constexpr int kGenerations = 64;               // numbers that are given again while they are read could make a circle
constexpr int kLineBytes = 4096;               // name spaces nest 32 deep at most; longer lines are other fields

// The numbers in a field of the status of `process`, a folder of procfs; none where there is no such process or field.
std::vector<std::uint32_t> read_numbers(const std::string& process, std::string_view field) {
  std::vector<std::uint32_t> numbers;
  std::FILE* const status = std::fopen((process + "/status").c_str(), "re");
  if (status == nullptr) return numbers;
  char line[kLineBytes];
  while (std::fgets(line, sizeof(line), status) != nullptr) {
    if (std::strncmp(line, field.data(), field.size()) != 0) continue;
    const char* at = line + field.size();
    for (char* after = nullptr;; at = after) {
      const unsigned long number = std::strtoul(at, &after, 10);
      if (after == at) break;
      numbers.push_back(static_cast<std::uint32_t>(number));
    }
  }
  std::fclose(status);
  return numbers;
}

}  // namespace

OwnProcess OwnProcess::find(const std::string& proc) {
  OwnProcess own;
  own.proc_ = proc;
  own.names_ = read_numbers(proc + "/self", kNames);
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
    return process_id == name || is_descendant(process_id) ? Ownership::kOwn : Ownership::kForeign;
  }
  if (is_descendant(process_id)) return Ownership::kOwn;
  return hidden_ ? Ownership::kUnknown : Ownership::kForeign;
}

bool OwnProcess::is_descendant(std::uint32_t process_id) const {
  for (int generation = 0; generation < kGenerations; ++generation) {
    const std::vector<std::uint32_t> parent = read_numbers(proc_ + "/" + std::to_string(process_id), kParent);
    if (parent.empty() || parent.front() == 0) return false;
    process_id = parent.front();
    if (std::ranges::find(names_, process_id) != names_.end()) return true;
  }
  return false;
}

}  // namespace pybench
