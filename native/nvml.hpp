// SPDX-License-Identifier: Apache-2.0
// NVML, opened at run time: devices and their readings, each with NVML's return code, nothing guessed.
//
// A machine without the library or a driver gives an NvmlLibrary that is unavailable and says why; that is no error.
// It sets nothing on a device (pybench/measure/board/nvml.py does) and does not sample: see power_sampler.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "clock.hpp"
#include "nvml_abi.hpp"

namespace pybench {

// A number or NVML's code for why there is none: `value` means something only where `code` is 0.
struct Reading {
  std::int32_t code = nvml::kFunctionNotFound;
  double value = 0;
};

struct FieldRequest {
  unsigned field;
  unsigned scope;
};

struct FieldReading {
  Reading reading;
  std::int64_t realtime_us = 0;  // the driver's own stamp; 0 where it gave none
};

struct CounterReading {
  std::int64_t begin_ns;  // the call's two ends: it takes 3 to 16 ms on an H200
  std::int64_t end_ns;
  Reading energy_mj;
};

struct PowerSample {
  std::int64_t realtime_us;  // as the driver wrote it
  double power_mw;
};

struct DeviceProcess {
  std::uint32_t process_id;
  Reading used_bytes;
};

struct Processes {
  std::int32_t code = nvml::kFunctionNotFound;
  std::vector<DeviceProcess> list;

  std::vector<std::uint32_t> ids() const {
    std::vector<std::uint32_t> ids;
    for (const DeviceProcess& process : list) ids.push_back(process.process_id);
    return ids;
  }
};

// The entry points, null where the library lacks one (an older driver).
struct NvmlFunctions {
  int (*init)();
  int (*shutdown)();
  const char* (*error_string)(int);
  int (*driver_version)(char*, unsigned);
  int (*device_count)(unsigned*);
  int (*device_by_index)(unsigned, nvml::Device*);
  int (*uuid)(nvml::Device, char*, unsigned);
  int (*name)(nvml::Device, char*, unsigned);
  int (*total_energy)(nvml::Device, unsigned long long*);
  int (*field_values)(nvml::Device, int, nvml::FieldValue*);
  int (*samples)(nvml::Device, int, unsigned long long, int*, unsigned*, nvml::Sample*);
  int (*memory_info)(nvml::Device, nvml::Memory*);
  int (*processes)(nvml::Device, unsigned*, nvml::ProcessInfo*);
  int (*clock)(nvml::Device, int, unsigned*);
  int (*temperature)(nvml::Device, int, unsigned*);
  int (*throttle_reasons)(nvml::Device, unsigned long long*);
  int (*enforced_power_limit)(nvml::Device, unsigned*);
  int (*utilisation)(nvml::Device, nvml::Utilisation*);
};

class NvmlDevice;

class NvmlLibrary : public std::enable_shared_from_this<NvmlLibrary> {
 public:
  // `path` empty: the environment's PYBENCH_NVML_LIBRARY, else libnvidia-ml.so.1 by the loader's rules.
  static std::shared_ptr<NvmlLibrary> open(std::string path);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  bool available() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }  // empty when available
  const std::string& path() const { return path_; }
  std::string driver_version() const;  // empty when unavailable or not told
  std::string describe(std::int32_t code) const;
  std::vector<NvmlDevice> devices();
  const NvmlFunctions& functions() const { return functions_; }

 private:
  explicit NvmlLibrary(std::string path) : path_(std::move(path)) {}
  void load();

  std::string path_;
  std::string reason_;
  void* handle_ = nullptr;
  bool initialised_ = false;
  NvmlFunctions functions_{};
};

class NvmlDevice {
 public:
  NvmlDevice(std::shared_ptr<NvmlLibrary> library, unsigned index, nvml::Device handle);

  unsigned index() const { return index_; }
  const std::string& uuid() const { return uuid_; }
  const std::string& name() const { return name_; }
  nvml::Device handle() const { return handle_; }
  const NvmlLibrary& library() const { return *library_; }

  CounterReading energy_counter() const;
  Reading power_mw(unsigned field, unsigned scope = nvml::kScopeGpu) const;
  // All of `requests` in one call, each answer with its own code. Where the driver refuses them together it is asked
  // for one after another, so that one unknown field does not hide the others.
  std::vector<FieldReading> read_fields(const std::vector<FieldRequest>& requests) const;
  Reading clock_mhz(int clock) const;
  Reading temperature_c() const;
  Reading throttle_reasons() const;  // the bit mask as a number (all defined bits lie below 2^53)
  Reading power_limit_mw() const;    // the limit in force
  Reading memory_used_bytes() const;
  // Share of the driver's last sample period, 1/6 to 1 s long, in which a kernel ran, in percent.
  Reading utilisation_percent() const;
  Processes processes() const;
  // What the driver's buffer holds after `after_us` (0: all of it). Returns NVML's code; nothing new is success.
  std::int32_t drain_power_samples(std::int64_t after_us, std::vector<PowerSample>& into) const;

 private:
  std::shared_ptr<NvmlLibrary> library_;
  unsigned index_;
  nvml::Device handle_;
  std::string uuid_;
  std::string name_;
};

}  // namespace pybench
