// SPDX-License-Identifier: Apache-2.0
// The polled power fields of one device: instant and average, of the GPU, its memory and its module, in one call.
//
// Few devices have them all (memory: H100 and later; module: Grace Hopper). One that says NOT_SUPPORTED a few times is
// asked once a minute from then on; between, its column stays null with that code. It keeps no time: see
// power_sampler.hpp.
#pragma once

#include <array>
#include <cstdint>

#include "nvml.hpp"

namespace pybench {

constexpr std::array kPowerFields = {
    FieldRequest{nvml::kFieldPowerInstant, nvml::kScopeGpu},
    FieldRequest{nvml::kFieldPowerAverage, nvml::kScopeGpu},
    FieldRequest{nvml::kFieldPowerInstant, nvml::kScopeMemory},
    FieldRequest{nvml::kFieldPowerAverage, nvml::kScopeMemory},
    FieldRequest{nvml::kFieldPowerInstant, nvml::kScopeModule},
    FieldRequest{nvml::kFieldPowerAverage, nvml::kScopeModule},
};

class PowerFields {
 public:
  using Readings = std::array<FieldReading, kPowerFields.size()>;

  // One reading of every field that is worth asking for at `now_ns`; for the others what they said last.
  Readings read(const NvmlDevice& device, std::int64_t now_ns);

 private:
  struct Refusals {
    int in_a_row = 0;
    std::int64_t ask_again_ns = 0;
    std::int32_t code = nvml::kSuccess;
  };
  std::array<Refusals, kPowerFields.size()> refusals_;
};

}  // namespace pybench
