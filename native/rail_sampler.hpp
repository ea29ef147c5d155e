// SPDX-License-Identifier: Apache-2.0
// Reads the files in which the kernel's hwmon drivers tell voltages, currents and powers, at a fixed cadence, without
// the GIL.
//
// Each number is kept as the kernel wrote it, with the time of its read. pybench.measure.energy.rails knows the rail
// and the unit of each file. Source: Documentation/hwmon/sysfs-interface.rst.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recorder.hpp"
#include "sampling_threads.hpp"

namespace pybench {

constexpr std::int32_t kNoNumber = -1;  // what was read is no whole number that a line break ends

struct RailReading {
  std::int64_t begin_ns;  // of the read
  std::int64_t end_ns;
  std::int32_t code;   // 0, errno, or kNoNumber
  std::int64_t value;  // means something only where `code` is 0
};

// One whole number and a line break, as every numeric attribute of sysfs is; anything else is torn.
RailReading read_rail(const std::string& path);

class RailSampler {
 public:
  // Throws std::invalid_argument for an interval outside of 1 ms to 60 s. `expected_ns`: for how long memory is
  // reserved; sampling may go on for longer.
  RailSampler(std::vector<std::string> paths, std::int64_t interval_ns, std::int64_t expected_ns);

  void start();
  void stop();  // with a last reading of every file

  // Whole rounds over all paths, in their order: round r of path p is row r * paths + p.
  std::vector<RailReading> readings() const;
  std::int64_t missed_ticks() const { return threads_.missed_ticks(); }
  std::string failure() const { return threads_.failure(); }

 private:
  void sample();

  std::vector<std::string> paths_;
  std::int64_t interval_ns_;
  Recorder<RailReading> readings_;
  SamplingThreads threads_;
};

}  // namespace pybench
