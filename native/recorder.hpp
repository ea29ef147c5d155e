// SPDX-License-Identifier: Apache-2.0
// Rows that one sampling thread appends and other threads copy.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace pybench {

// Memory for `expected` rows is reserved up front; beyond it the sampling thread pays for growth, never the measured
// one.
template <typename Row>
class Recorder {
 public:
  explicit Recorder(std::size_t expected) { rows_.reserve(expected); }

  void append(const Row& row) {
    const std::lock_guard lock(mutex_);
    rows_.push_back(row);
  }

  std::vector<Row> copy() const {
    const std::lock_guard lock(mutex_);
    return rows_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Row> rows_;
};

}  // namespace pybench
