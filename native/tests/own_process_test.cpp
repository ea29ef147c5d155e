// SPDX-License-Identifier: Apache-2.0
#include "own_process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace pybench {
namespace {

// A /proc with only what is read of it.
class FakeProc {
 public:
  FakeProc(const std::string& status, const std::string& name_space) {
    std::string name = (std::filesystem::temp_directory_path() / "pybench-proc-XXXXXX").string();
    path_ = mkdtemp(name.data());
    std::filesystem::create_directories(path_ / "self/ns");
    std::ofstream(path_ / "self/status") << status;
    if (!name_space.empty()) std::filesystem::create_symlink(name_space, path_ / "self/ns/pid");
  }
  ~FakeProc() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }
  void add(int process_id, int parent) {
    std::filesystem::create_directories(path_ / std::to_string(process_id));
    std::ofstream(path_ / std::to_string(process_id) / "status") << "Name:\ta\nPPid:\t" << parent << "\n";
  }

 private:
  std::filesystem::path path_;
};

constexpr char kOuter[] = "pid:[4026531836]";
constexpr char kInner[] = "pid:[4026532999]";

TEST(OwnProcess, OutsideOfNameSpacesItsPidIsItsOwnAndOthersAreForeign) {
  const FakeProc proc("Name:\tpython\nNSpid:\t4711\n", kOuter);
  const OwnProcess own = OwnProcess::find(proc.path());
  EXPECT_EQ(own.of(4711, {12, 4711}), Ownership::kOwn);
  EXPECT_EQ(own.of(12, {12, 4711}), Ownership::kForeign);
  EXPECT_EQ(own.of(12, {12}), Ownership::kForeign);
}

TEST(OwnProcess, WhereProcShowsBothNumbersTheOuterOneIsRecognised) {
  const FakeProc proc("NSpid:\t80123\t7\n", kInner);
  const OwnProcess own = OwnProcess::find(proc.path());
  EXPECT_EQ(own.of(80123, {80123, 55}), Ownership::kOwn);
  EXPECT_EQ(own.of(55, {80123, 55}), Ownership::kForeign);
  EXPECT_EQ(own.of(7, {7, 55}), Ownership::kOwn);  // a driver that translates
  // The outer number goes first: here 7 is a stranger's.
  EXPECT_EQ(own.of(7, {7, 80123}), Ownership::kForeign);
}

TEST(OwnProcess, InAContainerWithItsOwnProcAnotherNumberIsUnknown) {
  const FakeProc proc("NSpid:\t7\n", kInner);
  const OwnProcess own = OwnProcess::find(proc.path());
  EXPECT_EQ(own.of(80123, {80123}), Ownership::kUnknown);
  EXPECT_EQ(own.of(7, {7, 80123}), Ownership::kOwn);
  EXPECT_EQ(own.of(80123, {7, 80123}), Ownership::kForeign);
}

TEST(OwnProcess, WhatItStartedIsItsOwnAndItsParentIsNot) {
  FakeProc proc("NSpid:\t4711\n", kOuter);
  proc.add(5000, 4711);
  proc.add(5001, 5000);
  proc.add(4000, 1);
  proc.add(4711, 4000);
  const OwnProcess own = OwnProcess::find(proc.path());
  EXPECT_EQ(own.of(5000, {5000}), Ownership::kOwn);
  EXPECT_EQ(own.of(5001, {5001, 4711}), Ownership::kOwn);
  EXPECT_EQ(own.of(4000, {4000, 5001}), Ownership::kForeign);
  EXPECT_EQ(own.of(6000, {6000, 5001}), Ownership::kForeign);  // not in this /proc
}

TEST(OwnProcess, ParentsThatMakeACircleEnd) {
  FakeProc proc("NSpid:\t4711\n", kOuter);
  proc.add(5000, 5001);
  proc.add(5001, 5000);
  EXPECT_EQ(OwnProcess::find(proc.path()).of(5000, {5000}), Ownership::kForeign);
}

TEST(OwnProcess, WithoutProcThePidIsWhatTheKernelSays) {
  const OwnProcess own = OwnProcess::find("/nonexistent");
  const auto process_id = static_cast<std::uint32_t>(getpid());
  EXPECT_EQ(own.of(process_id, {process_id}), Ownership::kOwn);
  EXPECT_EQ(own.of(process_id + 1, {process_id + 1}), Ownership::kForeign);
}

TEST(OwnProcess, ThisProcessKnowsItself) {
  const auto process_id = static_cast<std::uint32_t>(getpid());
  EXPECT_EQ(OwnProcess::find().of(process_id, {process_id}), Ownership::kOwn);
}

}  // namespace
}  // namespace pybench
