// SPDX-License-Identifier: Apache-2.0
// Implements rail_sampler.hpp.
#include "rail_sampler.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "clock.hpp"

namespace pybench {
namespace {

constexpr std::int64_t kShortestInterval_ns = 1'000'000;  // a read over I2C takes about 0.3 ms
constexpr std::int64_t kLongestInterval_ns = 60'000'000'000;
constexpr std::size_t kLongestText = 32;  // bytes: a 64-bit number has 20 digits and a sign

std::int64_t checked(std::int64_t interval_ns) {
  if (interval_ns < kShortestInterval_ns || interval_ns > kLongestInterval_ns) {
    throw std::invalid_argument("a sampling interval must lie between 1 ms and 60 s");
  }
  return interval_ns;
}

}  // namespace

RailReading read_rail(const std::string& path) {
  RailReading reading{monotonic_raw_ns(), 0, 0, 0};
  // Opened each time: a driver that is loaded again makes another file of the same name.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::array<char, kLongestText> text{};
  const ssize_t got = descriptor < 0 ? -1 : read(descriptor, text.data(), text.size());
  reading.code = got < 0 ? errno : 0;
  if (descriptor >= 0) close(descriptor);
  reading.end_ns = monotonic_raw_ns();
  if (got < 0) return reading;
  const auto [end, error] = std::from_chars(text.data(), text.data() + got, reading.value);
  const bool whole = error == std::errc() && end + 1 == text.data() + got && *end == '\n';
  if (!whole) reading = {reading.begin_ns, reading.end_ns, kNoNumber, 0};
  return reading;
}

RailSampler::RailSampler(std::vector<std::string> paths, std::int64_t interval_ns, std::int64_t expected_ns)
    : paths_(std::move(paths)),
      interval_ns_(checked(interval_ns)),
      readings_((static_cast<std::size_t>(std::max<std::int64_t>(0, expected_ns) / interval_ns_) + 256) *
                paths_.size()) {}

void RailSampler::start() {
  threads_.start({[this] { threads_.run_every(interval_ns_, [this] { sample(); }); }});
}

void RailSampler::stop() {
  if (threads_.stop()) sample();
}

std::vector<RailReading> RailSampler::readings() const {
  std::vector<RailReading> readings = readings_.copy();
  readings.resize(paths_.empty() ? 0 : readings.size() - readings.size() % paths_.size());
  return readings;
}

void RailSampler::sample() {
  for (const std::string& path : paths_) readings_.append(read_rail(path));
}

}  // namespace pybench
