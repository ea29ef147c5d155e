// SPDX-License-Identifier: Apache-2.0
// The CUDA driver, opened at run time: devices by UUID, their primary contexts, errors with the driver's own words.
//
// Only the driver interface is used, so neither the toolkit nor its runtime library is needed. A machine without
// libcuda or without a device gives a CudaDriver that is unavailable and says why; that is no error. The library is
// never closed again: contexts and a framework's own use of it outlive any object here.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cuda_abi.hpp"

namespace pybench {

// A call of the driver that failed: `call` and, of its code, number and name.
class CudaError : public std::runtime_error {
 public:
  CudaError(std::string call, int code, std::string name, const std::string& text)
      : std::runtime_error(call + ": " + name + " (" + std::to_string(code) + "): " + text),
        call(std::move(call)),
        code(code),
        name(std::move(name)) {}

  const std::string call;
  const int code;
  const std::string name;
};

// The entry points. `open` resolves all of them or calls the library unusable.
struct CudaFunctions {
  int (*init)(unsigned);
  int (*error_name)(int, const char**);
  int (*error_string)(int, const char**);
  int (*driver_version)(int*);
  int (*device_count)(int*);
  int (*device)(cuda::Device*, int);
  int (*device_uuid)(cuda::Uuid*, cuda::Device);
  int (*device_name)(char*, int, cuda::Device);
  int (*device_attribute)(int*, int, cuda::Device);
  int (*primary_retain)(cuda::Context*, cuda::Device);
  int (*primary_release)(cuda::Device);
  int (*context_push)(cuda::Context);
  int (*context_pop)(cuda::Context*);
  int (*stream_create)(cuda::Stream*, unsigned);
  int (*stream_destroy)(cuda::Stream);
  int (*stream_synchronize)(cuda::Stream);
  int (*stream_context)(cuda::Stream, cuda::Context*);
  int (*event_create)(cuda::Event*, unsigned);
  int (*event_destroy)(cuda::Event);
  int (*event_record)(cuda::Event, cuda::Stream);
  int (*event_synchronize)(cuda::Event);
  int (*event_query)(cuda::Event);
  int (*event_elapsed_ms)(float*, cuda::Event, cuda::Event);
  int (*graph_launch)(cuda::GraphExec, cuda::Stream);
  int (*module_load)(cuda::Module*, const void*);
  int (*module_unload)(cuda::Module);
  int (*module_function)(cuda::Function*, cuda::Module, const char*);
  int (*launch_kernel)(cuda::Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       cuda::Stream, void**, void**);
  int (*memory_allocate)(cuda::DevicePointer*, std::size_t);
  int (*memory_free)(cuda::DevicePointer);
};

struct CudaDevice {
  cuda::Device handle;
  std::string uuid;  // GPU-xxxxxxxx-xxxx-..., as NVML writes it
  std::string name;
  int multiprocessors;
};

class CudaDriver {
 public:
  // `path` empty: the environment's PYBENCH_CUDA_LIBRARY, else libcuda.so.1 by the loader's rules.
  static std::shared_ptr<CudaDriver> open(std::string path);
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  bool available() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }  // empty when available
  bool opened() const { return handle_ != nullptr; }     // the library is there, whatever it said then
  const std::string& path() const { return path_; }
  int version() const;  // 12040 for CUDA 12.4; 0 when unavailable
  std::vector<CudaDevice> devices() const;

  const CudaFunctions& functions() const { return functions_; }
  // Throws CudaError unless `code` is success.
  void check(int code, const char* call) const {
    if (code != cuda::kSuccess) [[unlikely]]
      fail(code, call);
  }
  [[noreturn]] void fail(int code, std::string call) const;

 private:
  explicit CudaDriver(std::string path) : path_(std::move(path)) {}
  void load();
  std::string describe(int code) const;

  std::string path_;
  std::string reason_;
  void* handle_ = nullptr;
  CudaFunctions functions_{};
};

// Holds a device's primary context, the one that frameworks use, for as long as it lives.
class PrimaryContext {
 public:
  PrimaryContext(std::shared_ptr<CudaDriver> driver, const CudaDevice& device);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;
  cuda::Context handle() const { return handle_; }

 private:
  std::shared_ptr<CudaDriver> driver_;
  cuda::Device device_;
  cuda::Context handle_ = nullptr;
};

// Makes a context the calling thread's for the length of a block, and puts back what was.
class CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, cuda::Context context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const CudaDriver& driver_;
};

// Events with timing, made once; the context must be current when they are made and destroyed.
class EventPool {
 public:
  EventPool(const CudaDriver& driver, std::size_t count);
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  cuda::Event operator[](std::size_t index) const { return events_[index]; }

 private:
  const CudaDriver& driver_;
  std::vector<cuda::Event> events_;
};

// Waits for a stream at the end of a block, however it is left: nothing that the caller frees is then still in use.
class IdleAtExit {
 public:
  IdleAtExit(const CudaDriver& driver, cuda::Stream stream) : driver_(driver), stream_(stream) {}
  ~IdleAtExit() { driver_.functions().stream_synchronize(stream_); }
  IdleAtExit(const IdleAtExit&) = delete;
  IdleAtExit& operator=(const IdleAtExit&) = delete;

 private:
  const CudaDriver& driver_;
  cuda::Stream stream_;
};

}  // namespace pybench
