// SPDX-License-Identifier: Apache-2.0
// Stands in for libcuda.so.1 in tests: streams are queues whose work takes a simulated time on the host's clock.
//
// It executes nothing. What is put into a stream begins when the work before it has ended, or now, and ends after its
// simulated duration. An event carries the time at which the stream reaches it. Timers and loads therefore run end to
// end, with real waiting, on a machine without a GPU. Read from the environment whenever cuInit is called:
//   PYBENCH_FAKE_CUDA_GRAPH_US    durations of graph launches in turn, as in 100,100,5000 (default 100)
//   PYBENCH_FAKE_CUDA_BEFORE_US   duration of a launch of kBefore (default 100)
//   PYBENCH_FAKE_CUDA_LAUNCH_US   what cuGraphLaunch takes on the host (default 0)
//   PYBENCH_FAKE_CUDA_ROUND_NS    what a round of the load's kernel takes with all multiprocessors busy (default 50)
//   PYBENCH_FAKE_CUDA_FAIL        function:code:n, the n-th call of that function from now on fails once (n from 1)
//   PYBENCH_FAKE_CUDA_MEMORY_MB   device memory (default 1024)
// One device, the one of replay_nvml.cpp. The graphs that it knows are kGraph and kBefore. Elapsed times are rounded to
// 0.5 us and given as float milliseconds, as the driver's are. Callbacks, other kernels and real graphs are left out.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda_abi.hpp"

using namespace pybench::cuda;

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned char kUuid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7e, 0x1a};
constexpr char kName[] = "Simulated GPU";
constexpr int kMultiprocessors = 16;
constexpr std::uintptr_t kGraph = 0x6e41, kBefore = 0xbef0;
constexpr double kElapsedStep_ns = 500;
constexpr std::int64_t kSpin_ns = 100'000;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

struct SimulatedStream {
  std::int64_t free_at_ns = 0;
  std::int64_t enqueue(std::int64_t duration_ns) {
    free_at_ns = std::max(free_at_ns, now_ns()) + duration_ns;
    return free_at_ns;
  }
};

struct SimulatedEvent {
  std::int64_t at_ns = -1;  // never recorded
};

struct Failure {
  std::string function;
  int code = kSuccess;
  int calls_left = 0;
};

struct Simulation {
  std::mutex mutex;
  bool initialised = false;
  std::vector<double> graph_us;
  double before_us = 100, launch_us = 0, round_ns = 50;
  std::size_t memory_bytes = 0, launches = 0;
  Failure failure;
  std::set<void*> streams, events;
  std::map<DevicePointer, std::size_t> memory;
  DevicePointer next_address = 0x10000000;
  thread_local static std::vector<void*> contexts;
};
thread_local std::vector<void*> Simulation::contexts;

Simulation simulation;
char context_storage, module_storage, fill_storage, load_storage;  // their addresses are the handles

double number(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtod(text, nullptr) : otherwise;
}

void read_environment() {
  const char* durations = std::getenv("PYBENCH_FAKE_CUDA_GRAPH_US");
  simulation.graph_us.clear();
  for (const char* text = durations != nullptr ? durations : "100"; *text != '\0';) {
    char* end = nullptr;
    simulation.graph_us.push_back(std::strtod(text, &end));
    text = *end == ',' ? end + 1 : end + std::strlen(end);
  }
  simulation.launches = 0;
  simulation.before_us = number("PYBENCH_FAKE_CUDA_BEFORE_US", 100);
  simulation.launch_us = number("PYBENCH_FAKE_CUDA_LAUNCH_US", 0);
  simulation.round_ns = number("PYBENCH_FAKE_CUDA_ROUND_NS", 50);
  simulation.memory_bytes = static_cast<std::size_t>(number("PYBENCH_FAKE_CUDA_MEMORY_MB", 1024)) << 20;
  simulation.failure = {};
  const char* failure = std::getenv("PYBENCH_FAKE_CUDA_FAIL");
  char function[64] = {};
  int code = 0, calls = 0;
  if (failure != nullptr && std::sscanf(failure, "%63[^:]:%d:%d", function, &code, &calls) == 3) {
    simulation.failure = {function, code, calls};
  }
}

// The code with which this call fails, success as a rule.
int call(const char* function) {
  if (!simulation.initialised) return kNotInitialised;
  Failure& failure = simulation.failure;
  return failure.function == function && --failure.calls_left == 0 ? failure.code : kSuccess;
}

int call_in_context(const char* function) {
  const int code = call(function);
  return code == kSuccess && Simulation::contexts.empty() ? kInvalidContext : code;
}

void wait_until(std::int64_t at_ns) {
  const std::int64_t left_ns = at_ns - now_ns();
  if (left_ns > kSpin_ns) std::this_thread::sleep_for(std::chrono::nanoseconds(left_ns - kSpin_ns));
  while (now_ns() < at_ns) {
  }
}

SimulatedStream* stream_of(Stream handle) {
  return simulation.streams.contains(handle) ? static_cast<SimulatedStream*>(handle) : nullptr;
}

SimulatedEvent* event_of(Event handle) {
  return simulation.events.contains(handle) ? static_cast<SimulatedEvent*>(handle) : nullptr;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  const std::scoped_lock lock(simulation.mutex);
  read_environment();
  simulation.initialised = true;
  const int code = call("cuInit");
  simulation.initialised = code == kSuccess;
  return code;
}

int cuGetErrorName(int code, const char** into) {
  switch (code) {
    case kOutOfMemory:
      *into = "CUDA_ERROR_OUT_OF_MEMORY";
      return kSuccess;
    case kNoDevice:
      *into = "CUDA_ERROR_NO_DEVICE";
      return kSuccess;
    case kInvalidContext:
      *into = "CUDA_ERROR_INVALID_CONTEXT";
      return kSuccess;
    case kInvalidHandle:
      *into = "CUDA_ERROR_INVALID_HANDLE";
      return kSuccess;
    case 700:
      *into = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return kSuccess;
    default:
      *into = nullptr;
      return kInvalidValue;
  }
}

int cuGetErrorString(int code, const char** into) {
  *into = code == 700         ? "an illegal memory access was encountered"
          : code == kNoDevice ? "no device is detected"
                              : nullptr;
  return *into != nullptr ? kSuccess : kInvalidValue;
}

int cuDriverGetVersion(int* version) {
  *version = 12040;
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return call("cuDeviceGetCount");
}

int cuDeviceGet(Device* device, int ordinal) {
  *device = 0;
  return ordinal == 0 ? call("cuDeviceGet") : kInvalidValue;
}

int cuDeviceGetUuid_v2(Uuid* uuid, Device) {
  std::memcpy(uuid->bytes, kUuid, sizeof(kUuid));
  return call("cuDeviceGetUuid");
}

int cuDeviceGetName(char* into, int bytes, Device) {
  std::snprintf(into, static_cast<std::size_t>(bytes), "%s", kName);
  return call("cuDeviceGetName");
}

int cuDeviceGetAttribute(int* value, int attribute, Device) {
  *value = kMultiprocessors;
  return attribute == kMultiprocessorCount ? call("cuDeviceGetAttribute") : kInvalidValue;
}

int cuDevicePrimaryCtxRetain(Context* context, Device) {
  *context = &context_storage;
  return call("cuDevicePrimaryCtxRetain");
}

int cuDevicePrimaryCtxRelease_v2(Device) { return kSuccess; }

int cuCtxPushCurrent_v2(Context context) {
  if (context != &context_storage) return kInvalidContext;
  Simulation::contexts.push_back(context);
  return kSuccess;
}

int cuCtxPopCurrent_v2(Context* context) {
  if (Simulation::contexts.empty()) return kInvalidContext;
  *context = Simulation::contexts.back();
  Simulation::contexts.pop_back();
  return kSuccess;
}

int cuStreamCreate(Stream* stream, unsigned) {
  const std::scoped_lock lock(simulation.mutex);
  const int code = call("cuStreamCreate");
  if (code != kSuccess) return code;
  *stream = new SimulatedStream;
  simulation.streams.insert(*stream);
  return kSuccess;
}

int cuStreamDestroy_v2(Stream stream) {
  const std::scoped_lock lock(simulation.mutex);
  if (simulation.streams.erase(stream) == 0) return kInvalidHandle;
  delete static_cast<SimulatedStream*>(stream);
  return kSuccess;
}

int cuStreamSynchronize(Stream handle) {
  std::int64_t until_ns = 0;
  {
    const std::scoped_lock lock(simulation.mutex);
    const SimulatedStream* stream = stream_of(handle);
    if (stream == nullptr) return kInvalidHandle;
    until_ns = stream->free_at_ns;
  }
  wait_until(until_ns);
  return call("cuStreamSynchronize");
}

int cuStreamGetCtx(Stream handle, Context* context) {
  const std::scoped_lock lock(simulation.mutex);
  *context = &context_storage;
  return stream_of(handle) != nullptr ? call("cuStreamGetCtx") : kInvalidHandle;
}

int cuEventCreate(Event* event, unsigned) {
  const std::scoped_lock lock(simulation.mutex);
  const int code = call_in_context("cuEventCreate");
  if (code != kSuccess) return code;
  *event = new SimulatedEvent;
  simulation.events.insert(*event);
  return kSuccess;
}

int cuEventDestroy_v2(Event event) {
  const std::scoped_lock lock(simulation.mutex);
  if (simulation.events.erase(event) == 0) return kInvalidHandle;
  delete static_cast<SimulatedEvent*>(event);
  return kSuccess;
}

int cuEventRecord(Event handle, Stream stream_handle) {
  const std::scoped_lock lock(simulation.mutex);
  SimulatedEvent* event = event_of(handle);
  SimulatedStream* stream = stream_of(stream_handle);
  if (event == nullptr || stream == nullptr) return kInvalidHandle;
  const int code = call_in_context("cuEventRecord");
  if (code == kSuccess) event->at_ns = stream->enqueue(0);
  return code;
}

int cuEventSynchronize(Event handle) {
  std::int64_t at_ns = 0;
  {
    const std::scoped_lock lock(simulation.mutex);
    const SimulatedEvent* event = event_of(handle);
    if (event == nullptr) return kInvalidHandle;
    const int code = call_in_context("cuEventSynchronize");
    if (code != kSuccess) return code;
    at_ns = event->at_ns;
  }
  wait_until(at_ns);
  return kSuccess;
}

int cuEventQuery(Event handle) {
  const std::scoped_lock lock(simulation.mutex);
  const SimulatedEvent* event = event_of(handle);
  if (event == nullptr) return kInvalidHandle;
  const int code = call_in_context("cuEventQuery");
  return code == kSuccess && now_ns() < event->at_ns ? kNotReady : code;
}

int cuEventElapsedTime(float* milliseconds, Event first, Event second) {
  const std::scoped_lock lock(simulation.mutex);
  const SimulatedEvent *from = event_of(first), *to = event_of(second);
  if (from == nullptr || to == nullptr || from->at_ns < 0 || to->at_ns < 0) return kInvalidHandle;
  const int code = call("cuEventElapsedTime");
  if (code != kSuccess) return code;
  if (now_ns() < std::max(from->at_ns, to->at_ns)) return kNotReady;
  const double from_steps = std::round(static_cast<double>(from->at_ns) / kElapsedStep_ns);
  const double to_steps = std::round(static_cast<double>(to->at_ns) / kElapsedStep_ns);
  *milliseconds = static_cast<float>((to_steps - from_steps) * kElapsedStep_ns * 1e-6);
  return kSuccess;
}

int cuGraphLaunch(GraphExec graph, Stream handle) {
  const std::int64_t begin_ns = now_ns();
  const auto which = reinterpret_cast<std::uintptr_t>(graph);
  {
    const std::scoped_lock lock(simulation.mutex);
    if (stream_of(handle) == nullptr || (which != kGraph && which != kBefore)) return kInvalidHandle;
    const int code = call_in_context("cuGraphLaunch");
    if (code != kSuccess) return code;
  }
  // The GPU begins only when the host has submitted it.
  wait_until(begin_ns + std::llround(simulation.launch_us * 1000));
  const std::scoped_lock lock(simulation.mutex);
  const double duration_us =
      which == kBefore ? simulation.before_us : simulation.graph_us[simulation.launches++ % simulation.graph_us.size()];
  stream_of(handle)->enqueue(std::llround(duration_us * 1000));
  return kSuccess;
}

int cuModuleLoadData(Module* module, const void* image) {
  const std::string text(static_cast<const char*>(image));
  const bool known = text.find(".entry pybench_load") != std::string::npos;
  *module = &module_storage;
  return known ? call_in_context("cuModuleLoadData") : kInvalidPtx;
}

int cuModuleUnload(Module) { return kSuccess; }

int cuModuleGetFunction(Function* function, Module, const char* name) {
  *function = std::strcmp(name, "pybench_load") == 0 ? &load_storage : &fill_storage;
  return call_in_context("cuModuleGetFunction");
}

int cuLaunchKernel(Function function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned, Stream handle, void** parameters, void**) {
  const std::scoped_lock lock(simulation.mutex);
  SimulatedStream* stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (blocks < 1 || blocks > kMultiprocessors || threads > 1024) return kInvalidValue;
  const int code = call_in_context("cuLaunchKernel");
  if (code != kSuccess) return code;
  const double rounds = function == &load_storage ? *static_cast<std::uint32_t*>(parameters[2]) : 1;
  stream->enqueue(std::llround(rounds * simulation.round_ns * (0.5 + 0.5 * blocks / kMultiprocessors)));
  return kSuccess;
}

int cuMemAlloc_v2(DevicePointer* address, std::size_t bytes) {
  const std::scoped_lock lock(simulation.mutex);
  const int code = call_in_context("cuMemAlloc");
  if (code != kSuccess) return code;
  std::size_t used = 0;
  for (const auto& [at, size] : simulation.memory) used += size;
  if (used + bytes > simulation.memory_bytes) return kOutOfMemory;
  *address = simulation.next_address;
  simulation.next_address += bytes;
  simulation.memory[*address] = bytes;
  return kSuccess;
}

int cuMemFree_v2(DevicePointer address) {
  const std::scoped_lock lock(simulation.mutex);
  return simulation.memory.erase(address) == 1 ? kSuccess : kInvalidValue;
}

// For tests: what has been made and not destroyed (streams, events, allocations).
int pybench_fake_cuda_held() {
  const std::scoped_lock lock(simulation.mutex);
  return static_cast<int>(simulation.streams.size() + simulation.events.size() + simulation.memory.size());
}

}  // extern "C"
