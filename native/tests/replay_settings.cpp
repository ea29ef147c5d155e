// SPDX-License-Identifier: Apache-2.0
// Implements replay_settings.hpp and NVML's entry points for power limits and clock locks.
#include "replay_settings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

using namespace pybench::nvml;

extern "C" int nvmlDeviceGetUUID(Device, char*, unsigned);

namespace {

constexpr unsigned kMinimumLimit_mw = 200'000;
constexpr unsigned kMaximumLimit_mw = 700'000;
constexpr unsigned kMemoryClocks_mhz[] = {3201, 1593};
constexpr unsigned kSlowestSm_mhz = 345;
constexpr unsigned kFastestSm_mhz = 1980;
constexpr unsigned kSmStep_mhz = 15;
constexpr double kForever_us = std::numeric_limits<double>::infinity();

struct Lock {
  unsigned minimum_mhz = 0;  // 0: not locked
  unsigned maximum_mhz = 0;
};

struct State {
  unsigned limit_mw = kMaximumLimit_mw;
  Lock sm, memory;
  long settings = 0;
};

double variable(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtod(text, nullptr) : otherwise;
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string uuid_of(Device device) {
  char text[96] = {};
  nvmlDeviceGetUUID(device, text, sizeof text);
  return text;
}

bool is_kept() { return std::getenv("PYBENCH_REPLAY_STATE") != nullptr; }

// What a device was told until `until_us`.
State read_state(Device device, double until_us) {
  State state;
  std::ifstream log(std::getenv("PYBENCH_REPLAY_STATE"));
  const std::string uuid = uuid_of(device);
  for (std::string line; std::getline(log, line);) {
    std::istringstream words(line);
    std::string whose, what;
    double at_us = 0;
    words >> whose >> at_us >> what;
    if (whose != uuid || at_us > until_us) continue;
    ++state.settings;
    if (what == "power_limit_mw") words >> state.limit_mw;
    Lock& lock = what.starts_with("sm") ? state.sm : state.memory;
    if (what.ends_with("_lock_mhz")) words >> lock.minimum_mhz >> lock.maximum_mhz;
    if (what.ends_with("_reset")) lock = {};
  }
  return state;
}

State in_force(Device device) {
  return read_state(device, now_us() - 1000 * variable("PYBENCH_REPLAY_SETTING_DELAY_MS", 0));
}

int set(Device device, const std::string& what) {
  if (!is_kept()) return kNotSupported;
  if (static_cast<double>(read_state(device, kForever_us).settings) >= variable("PYBENCH_REPLAY_SETTERS", 1e9)) {
    return kNoPermission;
  }
  const char* refused = std::getenv("PYBENCH_REPLAY_REFUSED");
  if (refused != nullptr && what.starts_with(refused)) return kNoPermission;
  std::ostringstream line;
  line << uuid_of(device) << ' ' << static_cast<long long>(now_us()) << ' ' << what << '\n';
  const int file = open(std::getenv("PYBENCH_REPLAY_STATE"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return kNoPermission;
  const std::string text = line.str();
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return written ? kSuccess : kNoPermission;
}

int set_lock(Device device, const char* what, unsigned minimum_mhz, unsigned maximum_mhz) {
  if (minimum_mhz > maximum_mhz) return kInvalidArgument;
  return set(device, std::string(what) + " " + std::to_string(minimum_mhz) + " " + std::to_string(maximum_mhz));
}

int give(const std::vector<unsigned>& list, unsigned* count, unsigned* into) {
  const bool fits = into != nullptr && *count >= list.size();
  *count = static_cast<unsigned>(list.size());
  if (!fits) return kInsufficientSize;
  std::ranges::copy(list, into);
  return kSuccess;
}

}  // namespace

int replayed_clock_mhz(Device device, int clock, int recorded_code, unsigned* mhz) {
  if (!is_kept()) return recorded_code;
  const State state = in_force(device);
  const Lock& lock = clock == kClockSm ? state.sm : state.memory;
  if (recorded_code != kSuccess) *mhz = clock == kClockSm ? kFastestSm_mhz : kMemoryClocks_mhz[0];
  if (lock.maximum_mhz > 0) *mhz = std::clamp(*mhz, lock.minimum_mhz, lock.maximum_mhz);
  if (clock == kClockSm) *mhz = std::min(*mhz, static_cast<unsigned>(variable("PYBENCH_REPLAY_SM_CEILING_MHZ", 1e6)));
  return kSuccess;
}

extern "C" {

int nvmlDeviceGetPowerManagementLimit(Device device, unsigned* limit_mw) {
  if (!is_kept()) return kNotSupported;
  *limit_mw = read_state(device, kForever_us).limit_mw;
  return kSuccess;
}

int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* limit_mw) {
  if (!is_kept()) return kNotSupported;
  *limit_mw = in_force(device).limit_mw;
  return kSuccess;
}

int nvmlDeviceGetPowerManagementLimitConstraints(Device, unsigned* minimum_mw, unsigned* maximum_mw) {
  if (!is_kept()) return kNotSupported;
  *minimum_mw = kMinimumLimit_mw;
  *maximum_mw = kMaximumLimit_mw;
  return kSuccess;
}

int nvmlDeviceSetPowerManagementLimit(Device device, unsigned limit_mw) {
  if (limit_mw < kMinimumLimit_mw || limit_mw > kMaximumLimit_mw) return kInvalidArgument;
  const auto step_mw = static_cast<unsigned>(1000 * variable("PYBENCH_REPLAY_POWER_STEP_W", 0.001));
  return set(device, "power_limit_mw " + std::to_string(limit_mw / step_mw * step_mw));
}

int nvmlDeviceSetGpuLockedClocks(Device device, unsigned minimum_mhz, unsigned maximum_mhz) {
  return set_lock(device, "sm_lock_mhz", minimum_mhz, maximum_mhz);
}

int nvmlDeviceResetGpuLockedClocks(Device device) { return set(device, "sm_reset"); }

int nvmlDeviceSetMemoryLockedClocks(Device device, unsigned minimum_mhz, unsigned maximum_mhz) {
  return set_lock(device, "memory_lock_mhz", minimum_mhz, maximum_mhz);
}

int nvmlDeviceResetMemoryLockedClocks(Device device) { return set(device, "memory_reset"); }

int nvmlDeviceGetSupportedMemoryClocks(Device, unsigned* count, unsigned* clocks_mhz) {
  if (!is_kept()) return kNotSupported;
  return give({std::begin(kMemoryClocks_mhz), std::end(kMemoryClocks_mhz)}, count, clocks_mhz);
}

int nvmlDeviceGetSupportedGraphicsClocks(Device, unsigned memory_mhz, unsigned* count, unsigned* clocks_mhz) {
  if (!is_kept()) return kNotSupported;
  if (std::ranges::find(kMemoryClocks_mhz, memory_mhz) == std::end(kMemoryClocks_mhz)) return kNotFound;
  std::vector<unsigned> list;
  for (unsigned mhz = kFastestSm_mhz; mhz >= kSlowestSm_mhz; mhz -= kSmStep_mhz) list.push_back(mhz);
  return give(list, count, clocks_mhz);
}

}  // extern "C"
