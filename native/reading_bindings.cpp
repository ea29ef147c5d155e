// SPDX-License-Identifier: Apache-2.0
// The part of the boundary between Python and C++ that is about reading finished runs: convert, release the GIL, call,
// map errors. No logic lives here.
#include "reading_bindings.hpp"

#include <pybind11/typing.h>

#include <cstring>

#include "run_folder.hpp"

namespace py = pybind11;

namespace pybench {
namespace {

py::str name_of(const std::string& name) {
  PyObject* const text = PyUnicode_DecodeFSDefaultAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(text);
}

template <typename Call>
RunFolder called(const Call& call) {
  try {
    const py::gil_scoped_release release;
    return call();
  } catch (const RunFolderError& error) {
    const int code = error.code().value();
    PyErr_SetObject(PyExc_OSError, py::make_tuple(code, std::strerror(code), name_of(error.name)).ptr());
    throw py::error_already_set();
  }
}

using Contents = py::typing::Dict<py::str, py::typing::Optional<py::bytes>>;

// Name -> content, None of those that are not kept; what stat says of all; the last change.
py::typing::Tuple<Contents, py::bytes, std::int64_t> read_folder(const py::bytes& folder, std::size_t kept_bytes) {
  const std::string path = folder;
  const RunFolder found = called([&] { return read_run_folder(path, kept_bytes); });
  Contents contents;
  for (const RunFile& file : found.files) {
    const char* const begin = found.contents.data() + file.begin;
    contents[name_of(file.name)] = file.kept ? py::object(py::bytes(begin, file.size)) : py::object(py::none());
  }
  return py::make_tuple(contents, py::bytes(found.facts), found.newest_ns);
}

py::bytes stat_folder(const py::bytes& folder) {
  const std::string path = folder;
  return py::bytes(called([&] { return stat_run_folder(path); }).facts);
}

}  // namespace

void bind_reading(py::module_& module) {
  module.def("read_run_folder", &read_folder, py::arg("folder"), py::arg("kept_bytes"));
  module.def("stat_run_folder", &stat_folder, py::arg("folder"));
}

}  // namespace pybench
