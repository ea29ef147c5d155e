// SPDX-License-Identifier: Apache-2.0
// The files of a finished run, listed, opened and read in one call: a report of 10,000 runs reads 140,000 small files.
//
// pybench/campaign/digests.py says which files belong to a run. Hidden ones do not, and none with a line end in its
// name. A link counts where it leads to a file; what is neither file nor folder does not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace pybench {

struct RunFile {
  std::string name;       // relative to the run's folder
  bool kept = false;      // whether its content is here
  std::size_t begin = 0;  // of the content in RunFolder::contents
  std::size_t size = 0;
};

struct RunFolder {
  std::vector<RunFile> files;  // sorted by name in each folder
  std::string contents;        // of the files that are kept, one after another
  std::string facts;  // "<name>\0(<bytes>, <mtime, ns>, <ctime, ns>, <inode>)\n" of each file, before it was read
  std::int64_t newest_ns = 0;  // the last change of any of them, since 1970
};

// `name`: the file that cannot be read, relative to the run's folder; empty for the folder itself.
struct RunFolderError : std::system_error {
  RunFolderError(int code, std::string file)
      : std::system_error(code, std::generic_category()), name(std::move(file)) {}
  std::string name;
};

// Keeps the content of files of at most `kept_bytes` that had their size while they were read; nothing is cached.
RunFolder read_run_folder(const std::string& folder, std::size_t kept_bytes);

// The same without opening a file: `facts`, `newest_ns` and names.
RunFolder stat_run_folder(const std::string& folder);

}  // namespace pybench
