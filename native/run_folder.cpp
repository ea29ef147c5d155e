// SPDX-License-Identifier: Apache-2.0
// Implements run_folder.hpp on openat(2), fstat(2) and readdir(3).
#include "run_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

namespace pybench {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

int open_at(int below, const char* path, int flags, const std::string& name) {
  for (;;) {
    const int opened = openat(below, path, O_RDONLY | O_CLOEXEC | flags);
    if (opened >= 0) return opened;
    if (errno != EINTR) throw RunFolderError(errno, name);
  }
}

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * kNanoseconds + time.tv_nsec; }

class Reader {
 public:
  explicit Reader(std::optional<std::size_t> kept_bytes) : kept_bytes_(kept_bytes) {
    if (kept_bytes) buffer_.resize(*kept_bytes + 1);
  }

  void read(Descriptor opened, const std::string& prefix) {
    const std::unique_ptr<DIR, CloseFolder> folder(fdopendir(opened.get()));
    if (folder == nullptr) throw RunFolderError(errno, prefix);
    opened.release();
    const int below = dirfd(folder.get());
    for (const auto& [name, type] : entries(folder.get(), prefix)) {
      const std::string path = prefix + name;
      if (type == DT_DIR) {
        read(Descriptor(open_at(below, name.c_str(), O_DIRECTORY | O_NOFOLLOW, path)), path + "/");
      } else if (type == DT_REG || links_to_file(below, name, path)) {
        add(below, name, path);
      }
    }
  }

  RunFolder found;

 private:
  using Entry = std::pair<std::string, unsigned char>;  // name, and type as in dirent

  static std::vector<Entry> entries(DIR* folder, const std::string& prefix) {
    std::vector<Entry> listed;
    for (;;) {
      errno = 0;
      const dirent* const entry = readdir(folder);
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name.front() == '.' || name.find('\n') != std::string::npos) continue;
      listed.emplace_back(name, entry->d_type == DT_UNKNOWN ? type_of(dirfd(folder), name, prefix) : entry->d_type);
    }
    if (errno != 0) throw RunFolderError(errno, prefix);
    std::ranges::sort(listed);
    return listed;
  }

  // For file systems that do not list types.
  static unsigned char type_of(int below, const std::string& name, const std::string& prefix) {
    struct stat status{};
    if (fstatat(below, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return DT_UNKNOWN;
      throw RunFolderError(errno, prefix + name);
    }
    return static_cast<unsigned char>(IFTODT(status.st_mode));
  }

  static bool links_to_file(int below, const std::string& name, const std::string& path) {
    struct stat status{};
    if (fstatat(below, name.c_str(), &status, 0) == 0) return S_ISREG(status.st_mode);
    if (errno == ENOENT) return false;
    throw RunFolderError(errno, path);
  }

  void add(int below, const std::string& name, const std::string& path) {
    struct stat status{};
    RunFile file{path};
    if (kept_bytes_) {
      const Descriptor opened(open_at(below, name.c_str(), 0, path));
      if (fstat(opened.get(), &status) != 0) throw RunFolderError(errno, path);
      if (static_cast<std::size_t>(status.st_size) <= *kept_bytes_) keep(opened.get(), status, file);
    } else if (fstatat(below, name.c_str(), &status, 0) != 0) {
      throw RunFolderError(errno, path);
    }
    note(status, path);
    found.files.push_back(std::move(file));
  }

  // Asks for one byte more than the file has, so that a file that grew is not taken for a whole one.
  void keep(int opened, const struct stat& status, RunFile& file) {
    const auto size = static_cast<std::size_t>(status.st_size);
    ssize_t count = -1;
    do {
      count = ::read(opened, buffer_.data(), size + 1);
    } while (count < 0 && errno == EINTR);
    if (count < 0) throw RunFolderError(errno, file.name);
    if (static_cast<std::size_t>(count) != size) return;
    file.kept = true;
    file.begin = found.contents.size();
    file.size = size;
    found.contents.append(buffer_.data(), size);
  }

  void note(const struct stat& status, const std::string& path) {
    const std::int64_t written_ns = nanoseconds(status.st_mtim);
    const std::int64_t changed_ns = nanoseconds(status.st_ctim);
    char line[128];
    const int length =
        std::snprintf(line, sizeof(line), "(%lld, %lld, %lld, %llu)\n", static_cast<long long>(status.st_size),
                      static_cast<long long>(written_ns), static_cast<long long>(changed_ns),
                      static_cast<unsigned long long>(status.st_ino));
    found.facts.append(path).push_back('\0');
    found.facts.append(line, static_cast<std::size_t>(length));
    found.newest_ns = std::max({found.newest_ns, written_ns, changed_ns});
  }

  std::optional<std::size_t> kept_bytes_;  // none: no file is opened
  std::string buffer_;
};

RunFolder read_with(Reader reader, const std::string& folder) {
  reader.read(Descriptor(open_at(AT_FDCWD, folder.c_str(), O_DIRECTORY, "")), "");
  return std::move(reader.found);
}

}  // namespace

RunFolder read_run_folder(const std::string& folder, std::size_t kept_bytes) {
  return read_with(Reader(kept_bytes), folder);
}

RunFolder stat_run_folder(const std::string& folder) { return read_with(Reader(std::nullopt), folder); }

}  // namespace pybench
