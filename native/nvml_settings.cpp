// SPDX-License-Identifier: Apache-2.0
// Implements nvml_settings.hpp.
#include "nvml_settings.hpp"

#include <algorithm>
#include <utility>

namespace pybench {
namespace {

constexpr unsigned kMostFrequencies = 4096;  // NVML's lists have some hundreds

template <typename Function, typename... Arguments>
std::int32_t call(Function function, Arguments... arguments) {
  return function != nullptr ? function(arguments...) : nvml::kFunctionNotFound;
}

// NVML's lists take a capacity and give a count: `function(arguments..., &count, list)`.
template <typename Function, typename... Arguments>
Frequencies list(Function function, Arguments... arguments) {
  Frequencies found;
  if (function == nullptr) return found;
  found.list_mhz.resize(kMostFrequencies);
  unsigned count = kMostFrequencies;
  found.code = function(arguments..., &count, found.list_mhz.data());
  found.list_mhz.resize(found.code == nvml::kSuccess ? std::min(count, kMostFrequencies) : 0);
  std::ranges::sort(found.list_mhz);
  return found;
}

}  // namespace

NvmlSettings::NvmlSettings(NvmlDevice device) : device_(std::move(device)) {
  const NvmlLibrary& library = device_.library();
  library.resolve("nvmlDeviceGetPowerManagementLimit", functions_.power_limit);
  library.resolve("nvmlDeviceGetPowerManagementLimitConstraints", functions_.power_range);
  library.resolve("nvmlDeviceSetPowerManagementLimit", functions_.set_power_limit);
  library.resolve("nvmlDeviceSetGpuLockedClocks", functions_.lock_sm_clock);
  library.resolve("nvmlDeviceResetGpuLockedClocks", functions_.reset_sm_clock);
  library.resolve("nvmlDeviceSetMemoryLockedClocks", functions_.lock_memory_clock);
  library.resolve("nvmlDeviceResetMemoryLockedClocks", functions_.reset_memory_clock);
  library.resolve("nvmlDeviceGetSupportedMemoryClocks", functions_.memory_clocks);
  library.resolve("nvmlDeviceGetSupportedGraphicsClocks", functions_.sm_clocks);
}

Reading NvmlSettings::power_limit_mw() const {
  unsigned limit_mw = 0;
  const std::int32_t code = call(functions_.power_limit, device_.handle(), &limit_mw);
  return {code, code == nvml::kSuccess ? static_cast<double>(limit_mw) : 0};
}

PowerRange NvmlSettings::power_range() const {
  unsigned minimum_mw = 0;
  unsigned maximum_mw = 0;
  const std::int32_t code = call(functions_.power_range, device_.handle(), &minimum_mw, &maximum_mw);
  if (code != nvml::kSuccess) return {code, 0, 0};
  return {code, static_cast<double>(minimum_mw), static_cast<double>(maximum_mw)};
}

Frequencies NvmlSettings::memory_clocks_mhz() const { return list(functions_.memory_clocks, device_.handle()); }

Frequencies NvmlSettings::sm_clocks_mhz(unsigned memory_clock) const {
  return list(functions_.sm_clocks, device_.handle(), memory_clock);
}

std::int32_t NvmlSettings::set_power_limit_mw(unsigned limit_mw) const {
  return call(functions_.set_power_limit, device_.handle(), limit_mw);
}

std::int32_t NvmlSettings::lock_sm_clock_mhz(unsigned mhz) const {
  return call(functions_.lock_sm_clock, device_.handle(), mhz, mhz);
}

std::int32_t NvmlSettings::reset_sm_clock() const { return call(functions_.reset_sm_clock, device_.handle()); }

std::int32_t NvmlSettings::lock_memory_clock_mhz(unsigned mhz) const {
  return call(functions_.lock_memory_clock, device_.handle(), mhz, mhz);
}

std::int32_t NvmlSettings::reset_memory_clock() const { return call(functions_.reset_memory_clock, device_.handle()); }

}  // namespace pybench
