// SPDX-License-Identifier: Apache-2.0
#include "rail_sampler.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "clock.hpp"
#include "units.hpp"

namespace pybench {
namespace {

class RailFiles : public testing::Test {
 protected:
  RailFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "pybench-rails-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~RailFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& file) const { return (folder_ / file).string(); }
  std::string write(const std::string& file, const std::string& text) const {
    std::ofstream(path(file)) << text;
    return path(file);
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(RailFiles, ANumberAndItsLineBreakAreOneReading) {
  EXPECT_EQ(read_rail(write("in1_input", "5040\n")).value, 5040);
  EXPECT_EQ(read_rail(write("curr1_input", "-8\n")).value, -8);
  const RailReading reading = read_rail(path("in1_input"));
  EXPECT_EQ(reading.code, 0);
  EXPECT_LE(reading.begin_ns, reading.end_ns);
}

TEST_F(RailFiles, ATornNumberIsNone) {
  for (const char* text : {"", "\n", "504", "5040\n1", "50x0\n", "99999999999999999999999\n", "on\n"}) {
    EXPECT_EQ(read_rail(write("in1_input", text)).code, kNoNumber) << text;
  }
}

TEST_F(RailFiles, AFailedReadKeepsItsErrno) {
  EXPECT_EQ(read_rail(path("absent")).code, ENOENT);
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(read_rail(path("folder")).code, EISDIR);
}

TEST_F(RailFiles, RoundsAreWholeAndReadableWhileItRuns) {
  RailSampler sampler({write("in1_input", "5000\n"), write("curr1_input", "100\n"), path("absent")}, 2 * kMs, 0);
  sampler.start();
  for (int look = 0; look < 50; ++look) {
    ASSERT_EQ(sampler.readings().size() % 3, 0u);
    sleep_until_ns(monotonic_raw_ns() + kMs);
  }
  sampler.stop();
  const std::vector<RailReading> readings = sampler.readings();
  ASSERT_GE(readings.size(), 3u * 2u);
  for (std::size_t row = 0; row < readings.size(); row += 3) {
    EXPECT_EQ(readings[row].value, 5000);
    EXPECT_EQ(readings[row + 1].value, 100);
    EXPECT_EQ(readings[row + 2].code, ENOENT);
  }
  EXPECT_EQ(sampler.failure(), "");
}

TEST_F(RailFiles, StoppingReadsOnceMoreAndNeverStartedReadsNothing) {
  RailSampler sampler({write("in1_input", "5000\n")}, 60'000 * kMs, 0);
  sampler.stop();
  EXPECT_TRUE(sampler.readings().empty());
  sampler.start();
  write("in1_input", "4000\n");
  sampler.stop();
  EXPECT_EQ(sampler.readings().back().value, 4000);
}

TEST(RailSampler, AnImpossibleIntervalIsRefused) {
  EXPECT_THROW(RailSampler({}, 0, 0), std::invalid_argument);
  EXPECT_THROW(RailSampler({}, 61'000 * kMs, 0), std::invalid_argument);
}

}  // namespace
}  // namespace pybench
