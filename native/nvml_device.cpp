// SPDX-License-Identifier: Apache-2.0
// Implements NvmlDevice of nvml.hpp: one method a reading, each with NVML's own return code.
#include <algorithm>

#include "nvml.hpp"

namespace pybench {
namespace {

constexpr unsigned kTextBytes = 96;
constexpr std::size_t kUsualSamples = 512;
constexpr int kListAttempts = 3;  // a list may grow between asking for its length and asking for it

double to_double(int type, const nvml::Value& value) {
  switch (type) {
    case nvml::kTypeDouble:
      return value.as_double;
    case nvml::kTypeUnsignedInt:
      return value.as_unsigned;
    case nvml::kTypeUnsignedLong:
      return static_cast<double>(value.as_unsigned_long);
    case nvml::kTypeUnsignedLongLong:
      return static_cast<double>(value.as_unsigned_long_long);
    case nvml::kTypeSignedLongLong:
      return static_cast<double>(value.as_long_long);
    default:
      return value.as_int;
  }
}

bool known(int type) { return type >= nvml::kTypeDouble && type <= nvml::kTypeSignedInt; }

Reading of_field(const nvml::FieldValue& value) {
  if (value.code != nvml::kSuccess) return {value.code, 0};  // the call succeeds although the field does not
  if (!known(value.value_type)) return {nvml::kNotSupported, 0};
  return {nvml::kSuccess, to_double(value.value_type, value.value)};
}

// Calls `function(arguments..., &number)` where the library has it.
template <typename Number, typename Function, typename... Arguments>
Reading read_number(Function function, Arguments... arguments) {
  if (function == nullptr) return {};
  Number number = 0;
  const int code = function(arguments..., &number);
  return {code, code == nvml::kSuccess ? static_cast<double>(number) : 0};
}

}  // namespace

NvmlDevice::NvmlDevice(std::shared_ptr<NvmlLibrary> library, unsigned index, nvml::Device handle)
    : library_(std::move(library)), index_(index), handle_(handle) {
  const NvmlFunctions& functions = library_->functions();
  char text[kTextBytes] = {};
  if (functions.uuid(handle_, text, kTextBytes) == nvml::kSuccess) uuid_ = text;
  if (functions.name && functions.name(handle_, text, kTextBytes) == nvml::kSuccess) name_ = text;
}

CounterReading NvmlDevice::energy_counter() const {
  CounterReading reading{};
  reading.begin_ns = monotonic_raw_ns();
  reading.energy_mj = read_number<unsigned long long>(library_->functions().total_energy, handle_);
  reading.end_ns = monotonic_raw_ns();
  return reading;
}

Reading NvmlDevice::power_mw(unsigned field, unsigned scope) const { return read_fields({{field, scope}})[0].reading; }

std::vector<FieldReading> NvmlDevice::read_fields(const std::vector<FieldRequest>& requests) const {
  std::vector<FieldReading> readings(requests.size());
  if (library_->functions().field_values == nullptr || requests.empty()) return readings;
  std::vector<nvml::FieldValue> values(requests.size());
  for (std::size_t index = 0; index < requests.size(); ++index) {
    values[index].field = requests[index].field;
    values[index].scope = requests[index].scope;
  }
  const int code = library_->functions().field_values(handle_, static_cast<int>(values.size()), values.data());
  for (std::size_t index = 0; index < requests.size(); ++index) {
    if (code == nvml::kSuccess) {
      readings[index] = {of_field(values[index]), values[index].timestamp_us};
    } else if (requests.size() == 1) {
      readings[index].reading = {code, 0};
    } else {
      readings[index] = read_fields({requests[index]})[0];
    }
  }
  return readings;
}

Reading NvmlDevice::clock_mhz(int clock) const {
  return read_number<unsigned>(library_->functions().clock, handle_, clock);
}

Reading NvmlDevice::temperature_c() const {
  return read_number<unsigned>(library_->functions().temperature, handle_, nvml::kTemperatureGpu);
}

Reading NvmlDevice::throttle_reasons() const {
  return read_number<unsigned long long>(library_->functions().throttle_reasons, handle_);
}

Reading NvmlDevice::power_limit_mw() const {
  return read_number<unsigned>(library_->functions().enforced_power_limit, handle_);
}

Reading NvmlDevice::memory_used_bytes() const {
  if (library_->functions().memory_info == nullptr) return {};
  nvml::Memory memory{};
  const int code = library_->functions().memory_info(handle_, &memory);
  return {code, code == nvml::kSuccess ? static_cast<double>(memory.used_bytes) : 0};
}

Reading NvmlDevice::utilisation_percent() const {
  if (library_->functions().utilisation == nullptr) return {};
  nvml::Utilisation utilisation{};
  const int code = library_->functions().utilisation(handle_, &utilisation);
  return {code, code == nvml::kSuccess ? static_cast<double>(utilisation.gpu_percent) : 0};
}

Processes NvmlDevice::processes() const {
  Processes result;
  if (library_->functions().processes == nullptr) return result;
  unsigned count = 0;
  std::vector<nvml::ProcessInfo> infos;
  result.code = library_->functions().processes(handle_, &count, nullptr);
  for (int attempt = 0; attempt < kListAttempts && result.code == nvml::kInsufficientSize; ++attempt) {
    infos.resize(count + 4);
    count = static_cast<unsigned>(infos.size());
    result.code = library_->functions().processes(handle_, &count, infos.data());
  }
  if (result.code != nvml::kSuccess) return result;
  infos.resize(std::min<std::size_t>(count, infos.size()));
  for (const nvml::ProcessInfo& info : infos) {
    const bool told = info.used_bytes != ~0ULL;
    result.list.push_back(
        {info.process_id,
         {told ? nvml::kSuccess : nvml::kNotSupported, told ? static_cast<double>(info.used_bytes) : 0}});
  }
  return result;
}

std::int32_t NvmlDevice::drain_power_samples(std::int64_t after_us, std::vector<PowerSample>& into) const {
  into.clear();
  const auto function = library_->functions().samples;
  if (function == nullptr) return nvml::kFunctionNotFound;
  const auto after = static_cast<unsigned long long>(after_us);
  int type = nvml::kTypeUnsignedInt;
  // Room for four times what any driver seen keeps, so one call does; a driver that keeps more is asked how much.
  std::vector<nvml::Sample> samples(kUsualSamples);
  auto count = static_cast<unsigned>(samples.size());
  int code = function(handle_, nvml::kTotalPowerSamples, after, &type, &count, samples.data());
  for (int attempt = 0; attempt < kListAttempts && code == nvml::kInsufficientSize; ++attempt) {
    code = function(handle_, nvml::kTotalPowerSamples, after, &type, &count, nullptr);
    if (code != nvml::kSuccess && code != nvml::kInsufficientSize) break;
    samples.resize(count + 16);  // a few may arrive between the two calls
    count = static_cast<unsigned>(samples.size());
    code = function(handle_, nvml::kTotalPowerSamples, after, &type, &count, samples.data());
  }
  if (code == nvml::kNotFound) return nvml::kSuccess;
  if (code != nvml::kSuccess) return code;
  if (!known(type)) return nvml::kNotSupported;
  for (std::size_t index = 0; index < std::min<std::size_t>(count, samples.size()); ++index) {
    const nvml::Sample& sample = samples[index];
    // Some drivers return the whole buffer whatever was seen, and zero stamps for unused places.
    if (sample.timestamp_us <= after) continue;
    into.push_back({static_cast<std::int64_t>(sample.timestamp_us), to_double(type, sample.value)});
  }
  std::ranges::sort(into, {}, &PowerSample::realtime_us);
  return nvml::kSuccess;
}

}  // namespace pybench
