// SPDX-License-Identifier: Apache-2.0
// The one place where pybench changes a device: its power limit and its locked clocks, through NVML.
//
// Each call is one NVML call and gives NVML's own return code. Nothing here remembers or restores what was before, or
// judges a value: pybench.measure.board_settings and pybench.measure.guardian do. NVML has no reading of a clock lock;
// only the clock itself can be read (NvmlDevice::clock_mhz). Source of the signatures: nvml.h, as in nvml_abi.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "nvml.hpp"

namespace pybench {

struct PowerRange {
  std::int32_t code = nvml::kFunctionNotFound;
  double minimum_mw = 0;  // both mean something only where `code` is 0
  double maximum_mw = 0;
};

struct Frequencies {
  std::int32_t code = nvml::kFunctionNotFound;
  std::vector<unsigned> list_mhz;
};

// The entry points, null where the library lacks one.
struct NvmlSettingFunctions {
  int (*power_limit)(nvml::Device, unsigned*);
  int (*power_range)(nvml::Device, unsigned*, unsigned*);
  int (*set_power_limit)(nvml::Device, unsigned);
  int (*lock_sm_clock)(nvml::Device, unsigned, unsigned);
  int (*reset_sm_clock)(nvml::Device);
  int (*lock_memory_clock)(nvml::Device, unsigned, unsigned);
  int (*reset_memory_clock)(nvml::Device);
  int (*memory_clocks)(nvml::Device, unsigned*, unsigned*);
  int (*sm_clocks)(nvml::Device, unsigned, unsigned*, unsigned*);
};

class NvmlSettings {
 public:
  explicit NvmlSettings(NvmlDevice device);

  Reading power_limit_mw() const;  // as it was set; NvmlDevice::power_limit_mw is the limit in force
  PowerRange power_range() const;
  Frequencies memory_clocks_mhz() const;                   // that a lock can ask for
  Frequencies sm_clocks_mhz(unsigned memory_clock) const;  // that go with one of them

  std::int32_t set_power_limit_mw(unsigned limit_mw) const;
  std::int32_t lock_sm_clock_mhz(unsigned mhz) const;  // to one frequency: from `mhz` to `mhz`
  std::int32_t reset_sm_clock() const;
  std::int32_t lock_memory_clock_mhz(unsigned mhz) const;
  std::int32_t reset_memory_clock() const;

 private:
  NvmlDevice device_;  // keeps the library open
  NvmlSettingFunctions functions_{};
};

}  // namespace pybench
