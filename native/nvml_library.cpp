// SPDX-License-Identifier: Apache-2.0
// Implements NvmlLibrary of nvml.hpp: dlopen, the entry points, the list of devices.
#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "nvml.hpp"

namespace pybench {
namespace {

constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE and its name and version buffers are no larger

template <typename Function>
void resolve(void* handle, const char* symbol, Function& into) {
  into = reinterpret_cast<Function>(dlsym(handle, symbol));
}

void resolve_all(void* handle, NvmlFunctions& functions) {
  resolve(handle, "nvmlInit_v2", functions.init);
  resolve(handle, "nvmlShutdown", functions.shutdown);
  resolve(handle, "nvmlErrorString", functions.error_string);
  resolve(handle, "nvmlSystemGetDriverVersion", functions.driver_version);
  resolve(handle, "nvmlDeviceGetCount_v2", functions.device_count);
  resolve(handle, "nvmlDeviceGetHandleByIndex_v2", functions.device_by_index);
  resolve(handle, "nvmlDeviceGetUUID", functions.uuid);
  resolve(handle, "nvmlDeviceGetName", functions.name);
  resolve(handle, "nvmlDeviceGetTotalEnergyConsumption", functions.total_energy);
  resolve(handle, "nvmlDeviceGetFieldValues", functions.field_values);
  resolve(handle, "nvmlDeviceGetSamples", functions.samples);
  resolve(handle, "nvmlDeviceGetMemoryInfo", functions.memory_info);
  resolve(handle, "nvmlDeviceGetComputeRunningProcesses_v3", functions.processes);
  resolve(handle, "nvmlDeviceGetClockInfo", functions.clock);
  resolve(handle, "nvmlDeviceGetTemperature", functions.temperature);
  resolve(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", functions.throttle_reasons);
  resolve(handle, "nvmlDeviceGetUtilizationRates", functions.utilisation);
  resolve(handle, "nvmlDeviceGetEnforcedPowerLimit", functions.enforced_power_limit);
}

std::string choose_path(std::string path) {
  if (!path.empty()) return path;
  const char* chosen = std::getenv("PYBENCH_NVML_LIBRARY");
  return chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1";
}

}  // namespace

std::shared_ptr<NvmlLibrary> NvmlLibrary::open(std::string path) {
  std::shared_ptr<NvmlLibrary> library(new NvmlLibrary(choose_path(std::move(path))));
  library->load();
  return library;
}

void NvmlLibrary::load() {
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* why = dlerror();
    reason_ = why != nullptr ? why : "cannot be opened";
    return;
  }
  resolve_all(handle_, functions_);
  if (!functions_.init || !functions_.shutdown || !functions_.device_count || !functions_.device_by_index ||
      !functions_.uuid) {
    reason_ = path_ + " is not NVML: it lacks nvmlInit_v2 or the device functions";
    return;
  }
  const int code = functions_.init();
  if (code != nvml::kSuccess) {
    reason_ = "nvmlInit_v2: " + describe(code);
    return;
  }
  initialised_ = true;
}

NvmlLibrary::~NvmlLibrary() {
  if (initialised_) functions_.shutdown();
  if (handle_ != nullptr) dlclose(handle_);
}

std::string NvmlLibrary::describe(std::int32_t code) const {
  const char* text = functions_.error_string != nullptr ? functions_.error_string(code) : nullptr;
  const std::string number = "NVML code " + std::to_string(code);
  return text != nullptr ? number + " (" + text + ")" : number;
}

std::string NvmlLibrary::driver_version() const {
  char text[kTextBytes] = {};
  if (!available() || !functions_.driver_version) return {};
  return functions_.driver_version(text, kTextBytes) == nvml::kSuccess ? text : "";
}

std::vector<NvmlDevice> NvmlLibrary::devices() {
  std::vector<NvmlDevice> found;
  unsigned count = 0;
  if (!available() || functions_.device_count(&count) != nvml::kSuccess) return found;
  for (unsigned index = 0; index < count; ++index) {
    nvml::Device handle = nullptr;
    // A device that this process may not see (a cgroup hides it) is no device of ours.
    if (functions_.device_by_index(index, &handle) == nvml::kSuccess) {
      found.emplace_back(shared_from_this(), index, handle);
    }
  }
  return found;
}

}  // namespace pybench
