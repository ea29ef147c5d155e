// SPDX-License-Identifier: Apache-2.0
// Rows of C++ as columns of numpy, for the boundary between Python and C++.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <vector>

namespace pybench {

// One column of a table: `read` takes a row and gives a number.
template <typename Number, typename Row, typename Read>
pybind11::array_t<Number> column(const std::vector<Row>& rows, Read read) {
  pybind11::array_t<Number> array(static_cast<pybind11::ssize_t>(rows.size()));
  Number* out = array.mutable_data();
  for (const Row& row : rows) *out++ = static_cast<Number>(read(row));
  return array;
}

template <typename Row, typename Number>
void add_column(pybind11::dict& table, const char* name, const std::vector<Row>& rows, Number Row::* member) {
  table[name] = column<Number>(rows, [member](const Row& row) { return row.*member; });
}

}  // namespace pybench
