// SPDX-License-Identifier: Apache-2.0
// The replayed GPU of the C++ tests: a trace folder of its own that a test may edit, and the device that plays it.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nvml.hpp"

namespace pybench {

class Replayed {
 public:
  // `speed`: how many times as fast as it was recorded. `missing`: files of the trace to leave out.
  explicit Replayed(const std::string& speed = "1", const std::vector<std::string>& missing = {}) {
    namespace fs = std::filesystem;
    std::string name = (fs::temp_directory_path() / "pybench-replay-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
    for (const auto& entry : fs::directory_iterator(std::string(PYBENCH_TRACES) + "/h200-memory-2s")) {
      fs::copy(entry, folder_ / entry.path().filename());
    }
    for (const std::string& file : missing) fs::remove(folder_ / file);
    setenv("PYBENCH_REPLAY_TRACE", name.c_str(), 1);
    setenv("PYBENCH_REPLAY_SPEED", speed.c_str(), 1);
  }
  ~Replayed() {
    library_.reset();
    std::filesystem::remove_all(folder_);
  }
  Replayed(const Replayed&) = delete;
  Replayed& operator=(const Replayed&) = delete;

  void write(const std::string& file, const std::string& text) const { std::ofstream(folder_ / file) << text; }
  const std::filesystem::path& folder() const { return folder_; }

  // Starts playing, from the beginning. The folder is read once: write to it before.
  NvmlDevice device() {
    library_ = NvmlLibrary::open(PYBENCH_REPLAY_LIBRARY);
    if (!library_->available()) throw std::runtime_error(library_->reason());
    return library_->devices().at(0);
  }

 private:
  std::filesystem::path folder_;
  std::shared_ptr<NvmlLibrary> library_;
};

// Leaves so much of what plays out.
inline void jump_ms(std::int64_t milliseconds) {
  void* library = dlopen(PYBENCH_REPLAY_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  reinterpret_cast<void (*)(long long)>(dlsym(library, "replay_jump"))(milliseconds * 1000);
  dlclose(library);
}

inline void sleep_ms(std::int64_t milliseconds) { sleep_until_ns(monotonic_raw_ns() + milliseconds * 1'000'000); }

}  // namespace pybench
