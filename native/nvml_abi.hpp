// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that pybench calls, written out, because NVML is opened at run time and no NVIDIA
// header is needed to build. Source: nvml.h as shipped in DCGM 4.6.0 (sdk/nvidia/nvml/dcgm_nvml.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pybench::nvml {

using Device = void*;  // nvmlDevice_t, opaque

// nvmlReturn_t; the codes that this project produces or tells apart.
constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kFunctionNotFound = 13;

constexpr unsigned kFieldPowerAverage = 185;  // one-second average on Ampere and later, except GA100
constexpr unsigned kFieldPowerInstant = 186;
// Scopes of a power field (NVML_POWER_SCOPE_*): what the number is of.
constexpr unsigned kScopeGpu = 0;
constexpr unsigned kScopeModule = 1;  // with the CPU beside it: Grace Hopper
constexpr unsigned kScopeMemory = 2;
constexpr int kTotalPowerSamples = 0;  // nvmlSamplingType_t
constexpr int kClockSm = 1;            // nvmlClockType_t
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;  // nvmlTemperatureSensors_t

// nvmlValueType_t
constexpr int kTypeDouble = 0;
constexpr int kTypeUnsignedInt = 1;
constexpr int kTypeUnsignedLong = 2;
constexpr int kTypeUnsignedLongLong = 3;
constexpr int kTypeSignedLongLong = 4;
constexpr int kTypeSignedInt = 5;

union Value {
  double as_double;
  int as_int;
  unsigned as_unsigned;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_long_long;
};

struct Sample {
  unsigned long long timestamp_us;  // realtime
  Value value;
};
static_assert(sizeof(Sample) == 16);

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp_us;
  long long latency_us;
  int value_type;
  int code;
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);

struct Memory {
  unsigned long long total_bytes;
  unsigned long long free_bytes;
  unsigned long long used_bytes;
};

struct Utilisation {
  unsigned gpu_percent;
  unsigned memory_percent;
};

struct ProcessInfo {
  unsigned process_id;
  unsigned long long used_bytes;  // all ones when the driver does not know
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

}  // namespace pybench::nvml
