// SPDX-License-Identifier: Apache-2.0
// Implements cuda_driver.hpp: dlopen, the entry points, devices and contexts.
#include "cuda_driver.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace pybench {
namespace {

constexpr int kNameBytes = 256;

// Resolves one entry point by the first of its names that the library has; the newest comes first.
class Resolver {
 public:
  explicit Resolver(void* handle) : handle_(handle) {}

  template <typename Function>
  void operator()(Function& into, const char* name, const char* older = nullptr) {
    void* found = dlsym(handle_, name);
    if (found == nullptr && older != nullptr) found = dlsym(handle_, older);
    if (found == nullptr && missing_ == nullptr) missing_ = name;
    into = reinterpret_cast<Function>(found);
  }
  const char* missing() const { return missing_; }

 private:
  void* handle_;
  const char* missing_ = nullptr;
};

// Returns the first entry point that is missing, or null.
const char* resolve_all(void* handle, CudaFunctions& functions) {
  Resolver resolve(handle);
  resolve(functions.init, "cuInit");
  resolve(functions.error_name, "cuGetErrorName");
  resolve(functions.error_string, "cuGetErrorString");
  resolve(functions.driver_version, "cuDriverGetVersion");
  resolve(functions.device_count, "cuDeviceGetCount");
  resolve(functions.device, "cuDeviceGet");
  resolve(functions.device_uuid, "cuDeviceGetUuid_v2", "cuDeviceGetUuid");
  resolve(functions.device_name, "cuDeviceGetName");
  resolve(functions.device_attribute, "cuDeviceGetAttribute");
  resolve(functions.primary_retain, "cuDevicePrimaryCtxRetain");
  resolve(functions.primary_release, "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease");
  resolve(functions.context_push, "cuCtxPushCurrent_v2");
  resolve(functions.context_pop, "cuCtxPopCurrent_v2");
  resolve(functions.stream_create, "cuStreamCreate");
  resolve(functions.stream_destroy, "cuStreamDestroy_v2");
  resolve(functions.stream_synchronize, "cuStreamSynchronize");
  resolve(functions.stream_context, "cuStreamGetCtx");
  resolve(functions.event_create, "cuEventCreate");
  resolve(functions.event_destroy, "cuEventDestroy_v2");
  resolve(functions.event_record, "cuEventRecord");
  resolve(functions.event_synchronize, "cuEventSynchronize");
  resolve(functions.event_query, "cuEventQuery");
  resolve(functions.event_elapsed_ms, "cuEventElapsedTime_v2", "cuEventElapsedTime");
  resolve(functions.graph_launch, "cuGraphLaunch");
  resolve(functions.module_load, "cuModuleLoadData");
  resolve(functions.module_unload, "cuModuleUnload");
  resolve(functions.module_function, "cuModuleGetFunction");
  resolve(functions.launch_kernel, "cuLaunchKernel");
  resolve(functions.memory_allocate, "cuMemAlloc_v2");
  resolve(functions.memory_free, "cuMemFree_v2");
  return resolve.missing();
}

std::string choose_path(std::string path) {
  if (!path.empty()) return path;
  const char* chosen = std::getenv("PYBENCH_CUDA_LIBRARY");
  return chosen != nullptr && *chosen != '\0' ? chosen : "libcuda.so.1";
}

std::string uuid_text(const cuda::Uuid& uuid) {
  std::string text = "GPU-";
  for (int index = 0; index < 16; ++index) {
    if (index == 4 || index == 6 || index == 8 || index == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", uuid.bytes[index]);
    text += digits;
  }
  return text;
}

}  // namespace

std::shared_ptr<CudaDriver> CudaDriver::open(std::string path) {
  std::shared_ptr<CudaDriver> driver(new CudaDriver(choose_path(std::move(path))));
  driver->load();
  return driver;
}

void CudaDriver::load() {
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* why = dlerror();
    reason_ = why != nullptr ? why : "cannot be opened";
    return;
  }
  const char* missing = resolve_all(handle_, functions_);
  if (missing != nullptr) {
    reason_ = path_ + " is no CUDA driver of version 9.2 or later: it lacks " + missing;
    handle_ = nullptr;
    return;
  }
  const int code = functions_.init(0);
  if (code != cuda::kSuccess) reason_ = "cuInit: " + describe(code);
}

std::string CudaDriver::describe(int code) const {
  const char *name = nullptr, *text = nullptr;
  functions_.error_name(code, &name);
  functions_.error_string(code, &text);
  return std::string(name != nullptr ? name : "unknown error") + " (" + std::to_string(code) +
         "): " + (text != nullptr ? text : "no description");
}

void CudaDriver::fail(int code, std::string call) const {
  const char *name = nullptr, *text = nullptr;
  functions_.error_name(code, &name);
  functions_.error_string(code, &text);
  throw CudaError(std::move(call), code, name != nullptr ? name : "unknown error",
                  text != nullptr ? text : "no description");
}

int CudaDriver::version() const {
  int version = 0;
  if (available()) functions_.driver_version(&version);
  return version;
}

std::vector<CudaDevice> CudaDriver::devices() const {
  std::vector<CudaDevice> found;
  int count = 0;
  if (!available()) return found;
  check(functions_.device_count(&count), "cuDeviceGetCount");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CudaDevice device{};
    cuda::Uuid uuid{};
    char name[kNameBytes] = {};
    check(functions_.device(&device.handle, ordinal), "cuDeviceGet");
    check(functions_.device_uuid(&uuid, device.handle), "cuDeviceGetUuid");
    check(functions_.device_name(name, kNameBytes, device.handle), "cuDeviceGetName");
    check(functions_.device_attribute(&device.multiprocessors, cuda::kMultiprocessorCount, device.handle),
          "cuDeviceGetAttribute");
    device.uuid = uuid_text(uuid);
    device.name = name;
    found.push_back(std::move(device));
  }
  return found;
}

PrimaryContext::PrimaryContext(std::shared_ptr<CudaDriver> driver, const CudaDevice& device)
    : driver_(std::move(driver)), device_(device.handle) {
  driver_->check(driver_->functions().primary_retain(&handle_, device_), "cuDevicePrimaryCtxRetain");
}

PrimaryContext::~PrimaryContext() { driver_->functions().primary_release(device_); }

CurrentContext::CurrentContext(const CudaDriver& driver, cuda::Context context) : driver_(driver) {
  driver.check(driver.functions().context_push(context), "cuCtxPushCurrent");
}

CurrentContext::~CurrentContext() {
  cuda::Context ours = nullptr;
  driver_.functions().context_pop(&ours);
}

EventPool::EventPool(const CudaDriver& driver, std::size_t count) : driver_(driver) {
  events_.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    cuda::Event event = nullptr;
    const int code = driver.functions().event_create(&event, cuda::kEventDefault);
    if (code != cuda::kSuccess) {
      for (cuda::Event made : events_) driver.functions().event_destroy(made);
      driver.fail(code, "cuEventCreate");
    }
    events_.push_back(event);
  }
}

EventPool::~EventPool() {
  for (cuda::Event event : events_) driver_.functions().event_destroy(event);
}

}  // namespace pybench
