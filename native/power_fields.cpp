// SPDX-License-Identifier: Apache-2.0
// Implements power_fields.hpp.
#include "power_fields.hpp"

#include <vector>

namespace pybench {
namespace {

constexpr int kRefusalsBelieved = 5;  // a driver that is still loading may refuse once or twice what it has
constexpr std::int64_t kAskAgain_ns = 60'000'000'000;

// Any other failure may pass, so those fields are asked for each time.
bool refused(std::int32_t code) {
  return code == nvml::kNotSupported || code == nvml::kInvalidArgument || code == nvml::kFunctionNotFound;
}

}  // namespace

PowerFields::Readings PowerFields::read(const NvmlDevice& device, std::int64_t now_ns) {
  Readings readings;
  std::vector<FieldRequest> asked;
  std::vector<std::size_t> places;
  for (std::size_t field = 0; field < kPowerFields.size(); ++field) {
    readings[field].reading.code = refusals_[field].code;
    if (refusals_[field].in_a_row >= kRefusalsBelieved && now_ns < refusals_[field].ask_again_ns) continue;
    asked.push_back(kPowerFields[field]);
    places.push_back(field);
  }
  const std::vector<FieldReading> answers = device.read_fields(asked);
  for (std::size_t index = 0; index < answers.size(); ++index) {
    Refusals& refusals = refusals_[places[index]];
    readings[places[index]] = answers[index];
    refusals.code = answers[index].reading.code;
    refusals.in_a_row = refused(refusals.code) ? refusals.in_a_row + 1 : 0;
    refusals.ask_again_ns = now_ns + kAskAgain_ns;
  }
  return readings;
}

}  // namespace pybench
