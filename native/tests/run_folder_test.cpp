// SPDX-License-Identifier: Apache-2.0
#include "run_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace pybench {
namespace {

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "pybench-run-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~RunFolderTest() override { std::filesystem::remove_all(path_); }

  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
  }

  std::string read(std::size_t kept_bytes = 100) const {
    const RunFolder found = read_run_folder(path_.string(), kept_bytes);
    EXPECT_EQ(found.facts, stat_run_folder(path_.string()).facts);
    std::string text;
    for (const RunFile& file : found.files) {
      text += file.name + "=" + (file.kept ? found.contents.substr(file.begin, file.size) : "?") + ";";
    }
    return text;
  }

  std::filesystem::path path_;
};

TEST_F(RunFolderTest, FilesAreSortedByNameInEachFolder) {
  write("b", "2");
  write("a.json", "1");
  write("a/z", "4");
  write("a/b/c", "");
  EXPECT_EQ(read(), "a/b/c=;a/z=4;a.json=1;b=2;");
}

TEST_F(RunFolderTest, OnlyContentUpToTheLimitIsKept) {
  write("at", "1234");
  write("above", "12345");
  EXPECT_EQ(read(4), "above=?;at=1234;");
}

TEST_F(RunFolderTest, WhatIsNoFileOfARunIsNeitherListedNorOpened) {
  write("run.json", "{}");
  write(".hidden", "");
  write(".folder/file", "");
  write("two\nlines", "");
  write("../" + path_.filename().string() + "-elsewhere/file", "x");
  const std::filesystem::path elsewhere = path_.string() + "-elsewhere";
  std::filesystem::create_directory_symlink(elsewhere, path_ / "link-to-folder");
  std::filesystem::create_symlink(elsewhere / "file", path_ / "link-to-file");
  std::filesystem::create_symlink("nowhere", path_ / "link-to-nothing");
  ASSERT_EQ(mkfifo((path_ / "pipe").c_str(), 0600), 0);  // opening it would wait for ever
  EXPECT_EQ(read(), "link-to-file=x;run.json={};");
  std::filesystem::remove_all(elsewhere);
}

TEST_F(RunFolderTest, FactsAreThoseOfStat) {
  write("run.json", "{}");
  struct stat status{};
  ASSERT_EQ(stat((path_ / "run.json").c_str(), &status), 0);
  const auto ns = [](const timespec& time) { return std::to_string(time.tv_sec * 1'000'000'000 + time.tv_nsec); };
  const std::string name("run.json\0", 9);
  EXPECT_EQ(stat_run_folder(path_.string()).facts, name + "(2, " + ns(status.st_mtim) + ", " + ns(status.st_ctim) +
                                                       ", " + std::to_string(status.st_ino) + ")\n");
  EXPECT_EQ(std::to_string(read_run_folder(path_.string(), 9).newest_ns), ns(status.st_ctim));
}

TEST_F(RunFolderTest, AnErrorNamesTheFile) {
  write("cache/engine", "");
  std::filesystem::create_symlink("loop", path_ / "cache/loop");
  try {
    read_run_folder(path_.string(), 9);
    FAIL();
  } catch (const RunFolderError& error) {
    EXPECT_EQ(error.name, "cache/loop");
    EXPECT_EQ(error.code().value(), ELOOP);
  }
  try {
    stat_run_folder((path_ / "absent").string());
    FAIL();
  } catch (const RunFolderError& error) {
    EXPECT_EQ(error.name, "");
    EXPECT_EQ(error.code().value(), ENOENT);
  }
}

}  // namespace
}  // namespace pybench
