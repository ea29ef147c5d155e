// SPDX-License-Identifier: Apache-2.0
// Stands in for libnvidia-ml.so.1 in tests: plays a recorded trace through the NVML entry points that pybench calls.
//
// PYBENCH_REPLAY_TRACE names a folder for each device, separated by ':'; the devices' UUIDs count up from 7e1a. A
// folder has the columns of a recording (times in microseconds from a common origin):
//   samples.csv       t_us,power_w
//   polled.csv        t_us,power_average_w,power_instant_w
//   counter.csv       t_call_us,t_return_us,energy_j
//   clocks.csv        t_us,sm_mhz,temperature_c,event_reasons
//   memory.csv        t_us,used_bytes,process_count
//   polled_memory.csv t_us,memory_average_w,memory_instant_w
//   utilisation.csv   t_us,gpu_percent
// A file that is absent makes its readings NOT_SUPPORTED. PYBENCH_REPLAY_SPEED (default 1) plays faster or slower:
// power stays as recorded and energy is scaled with time, so the two still agree. At its end the trace begins again,
// and the energy counter goes on from where it was. The counter's call takes as long as it took then. What can be set,
// and how that is made to fail, is in replay_settings.hpp. replay_step_realtime(microseconds), which NVML lacks, moves
// the driver's clock, once: everything after it is stamped so much later. replay_jump(microseconds) leaves so much of
// the trace out, so that a test need not be in time for what comes next. PYBENCH_REPLAY_SECOND_PROCESS is the id of the
// second process in the list, which then holds as much memory as the first.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "nvml_abi.hpp"
#include "replay_settings.hpp"

using pybench::nvml::Device;
using namespace pybench::nvml;

namespace {

using Row = std::vector<double>;
using Table = std::vector<Row>;

constexpr int kUninitialised = 1;
constexpr int kUnknown = 999;
constexpr std::size_t kBufferedSamples = 120;  // how many the driver keeps
constexpr unsigned kFirstUuid = 0x7e1a;

Table read_table(const std::string& path, std::size_t columns) {
  std::ifstream file(path);
  Table table;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string cell;
    Row row;
    while (std::getline(cells, cell, ',')) row.push_back(std::strtod(cell.c_str(), nullptr));
    if (row.size() == columns) table.push_back(std::move(row));
  }
  return table;
}

// How far the driver's stamps are off realtime, from when on: see replay_step_realtime.
std::atomic<double> step_us = 0, step_at_us = INFINITY;

class Replay {
 public:
  bool load(const std::string& folder) {
    const std::string prefix = folder + "/";
    samples_ = read_table(prefix + "samples.csv", 2);
    polled_ = read_table(prefix + "polled.csv", 3);
    counter_ = read_table(prefix + "counter.csv", 3);
    clocks_ = read_table(prefix + "clocks.csv", 4);
    memory_ = read_table(prefix + "memory.csv", 3);
    polled_memory_ = read_table(prefix + "polled_memory.csv", 3);
    utilisation_ = read_table(prefix + "utilisation.csv", 2);
    begin_us_ = INFINITY;
    end_us_ = -INFINITY;
    for (const Table* table : {&samples_, &polled_, &counter_, &clocks_, &memory_}) {
      if (table->empty()) continue;
      begin_us_ = std::min(begin_us_, table->front()[0]);
      end_us_ = std::max(end_us_, table->back()[0]);
    }
    return end_us_ > begin_us_;
  }

  bool begin() {
    const char* speed = std::getenv("PYBENCH_REPLAY_SPEED");
    speed_ = speed != nullptr ? std::strtod(speed, nullptr) : 1.0;
    started_us_ = realtime_us();
    return speed_ > 0;
  }

  void jump(double by_us) { started_us_ = started_us_ - by_us / speed_; }

  // The latest row at or before now; null without a table or before its first row of the first round.
  const Row* current(const Table& table) const {
    if (table.empty()) return nullptr;
    const double position = begin_us_ + std::fmod(played_us(), length_us());
    auto after = std::ranges::upper_bound(table, position, {}, [](const Row& row) { return row[0]; });
    return after == table.begin() ? &table.front() : &*(after - 1);
  }

  int counter(unsigned long long* energy_mj) const {
    const Row* row = current(counter_);
    if (row == nullptr) return kNotSupported;
    const double rounds = std::floor(played_us() / length_us());
    const double first_j = counter_.front()[2];
    const double energy_j = (*row)[2] - first_j + rounds * (counter_.back()[2] - first_j);
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(((*row)[1] - (*row)[0]) / speed_));
    *energy_mj = static_cast<unsigned long long>(std::llround((first_j + energy_j / speed_) * 1000));
    return kSuccess;
  }

  // Samples newer than `after_us`, at most as many as the driver keeps, in realtime microseconds.
  int samples(unsigned long long after_us, std::vector<Sample>& into) const {
    if (samples_.empty()) return kNotSupported;
    const double played = played_us();
    std::size_t kept = 0;
    for (double round = std::floor(played / length_us()); round >= 0 && kept < kBufferedSamples; --round) {
      for (auto row = samples_.rbegin(); row != samples_.rend() && kept < kBufferedSamples; ++row) {
        const double at_us = (*row)[0] - begin_us_ + round * length_us();
        if (at_us > played) continue;
        ++kept;
        const auto stamp = static_cast<unsigned long long>(std::llround(stamped_us(started_us_ + at_us / speed_)));
        if (stamp <= after_us) continue;
        Value value{};
        value.as_unsigned = static_cast<unsigned>(std::llround((*row)[1] * 1000));
        into.insert(into.begin(), Sample{stamp, value});
      }
    }
    return kSuccess;
  }

  const Table& polled() const { return polled_; }
  const Table& polled_memory() const { return polled_memory_; }
  const Table& clocks() const { return clocks_; }
  const Table& memory() const { return memory_; }
  const Table& utilisation() const { return utilisation_; }

 public:
  static double stamped_us(double at_us) { return at_us < step_at_us ? at_us : at_us + step_us; }
  static double realtime_us() {
    return std::chrono::duration<double, std::micro>(std::chrono::system_clock::now().time_since_epoch()).count();
  }

 private:
  double played_us() const { return std::max(0.0, (realtime_us() - started_us_) * speed_); }
  double length_us() const { return end_us_ - begin_us_; }

  Table samples_, polled_, counter_, clocks_, memory_, polled_memory_, utilisation_;
  double begin_us_ = 0, end_us_ = 0;
  std::atomic<double> speed_ = 1, started_us_ = 0;
};

std::deque<Replay> replays;  // one a device; a device's handle is its address

const Replay& of(Device device) { return *static_cast<const Replay*>(device); }

std::string loaded_from;

// Each init begins the traces anew. They are read again only if others are named: handles stay good, and a sampler that
// another library object runs is not disturbed.
bool load_all() {
  step_us = 0;
  step_at_us = INFINITY;
  const char* named = std::getenv("PYBENCH_REPLAY_TRACE");
  const std::string wanted = named != nullptr ? named : "";
  if (wanted != loaded_from) {
    replays.clear();
    loaded_from.clear();
    std::istringstream folders(wanted);
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (!replays.emplace_back().load(folder)) return false;
    }
    loaded_from = wanted;
  }
  return !replays.empty() && std::ranges::all_of(replays, [](Replay& replay) { return replay.begin(); });
}

bool loaded = false;

int copy_text(const char* text, char* into, unsigned bytes) {
  if (std::strlen(text) >= bytes) return kInsufficientSize;
  std::strcpy(into, text);
  return kSuccess;
}

// The cell of the current row of one of the device's tables, as a whole number of `scale` parts.
template <typename Number>
int cell(Device device, const Table& (Replay::*table)() const, std::size_t column, double scale, Number* into) {
  const Row* row = of(device).current((of(device).*table)());
  if (row == nullptr) return kNotSupported;
  *into = static_cast<Number>(std::llround((*row)[column] * scale));
  return kSuccess;
}

}  // namespace

extern "C" {

void replay_step_realtime(long long microseconds) {
  step_at_us = Replay::realtime_us();
  step_us = static_cast<double>(microseconds);
}

void replay_jump(long long microseconds) {
  for (Replay& replay : replays) replay.jump(static_cast<double>(microseconds));
}

int nvmlInit_v2() {
  loaded = load_all();
  return loaded ? kSuccess : kUnknown;
}

int nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }

int nvmlShutdown() { return kSuccess; }

const char* nvmlErrorString(int code) {
  switch (code) {
    case kSuccess:
      return "Success";
    case kUninitialised:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    default:
      return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char* into, unsigned bytes) { return copy_text("replay", into, bytes); }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(replays.size());
  return loaded ? kSuccess : kUninitialised;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (index >= replays.size()) return kInvalidArgument;
  *device = &replays[index];
  return kSuccess;
}

int nvmlDeviceGetUUID(Device device, char* into, unsigned bytes) {
  char text[96];
  unsigned number = kFirstUuid;
  for (const Replay& replay : replays) {
    if (&replay == device) break;
    ++number;
  }
  std::snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012x", number);
  return copy_text(text, into, bytes);
}

int nvmlDeviceGetName(Device, char* into, unsigned bytes) { return copy_text("Replayed trace", into, bytes); }

int nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* energy_mj) {
  return of(device).counter(energy_mj);
}

int nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  for (FieldValue* value = values; value != values + count; ++value) {
    const bool average = value->field == kFieldPowerAverage;
    const bool known = average || value->field == kFieldPowerInstant;
    const auto table = value->scope == kScopeMemory ? &Replay::polled_memory : &Replay::polled;
    value->value = {};
    value->value_type = kTypeUnsignedInt;
    value->timestamp_us = std::llround(Replay::stamped_us(Replay::realtime_us()));
    value->code = known && value->scope != kScopeModule
                      ? cell(device, table, average ? 1 : 2, 1000, &value->value.as_unsigned)
                      : kNotSupported;
  }
  return kSuccess;
}

int nvmlDeviceGetSamples(Device device, int type, unsigned long long after_us, int* value_type, unsigned* count,
                         Sample* samples) {
  std::vector<Sample> found;
  const int code = type == kTotalPowerSamples ? of(device).samples(after_us, found) : kNotSupported;
  if (code != kSuccess) return code;
  if (found.empty()) return kNotFound;
  *value_type = kTypeUnsignedInt;
  if (samples == nullptr) {
    *count = kBufferedSamples;  // the driver, too, tells the buffer's size and not how many are new
    return kSuccess;
  }
  if (*count < found.size()) return kInsufficientSize;
  std::ranges::copy(found, samples);
  *count = static_cast<unsigned>(found.size());
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return cell(device, &Replay::memory, 1, 1, &memory->used_bytes);
}

int nvmlDeviceGetUtilizationRates(Device device, Utilisation* utilisation) {
  return cell(device, &Replay::utilisation, 1, 1, &utilisation->gpu_percent);
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* infos) {
  unsigned running = 0;
  const int code = cell(device, &Replay::memory, 2, 1, &running);
  if (code != kSuccess) return code;
  const bool fits = infos != nullptr && *count >= running;
  *count = running;
  if (!fits) return running == 0 ? kSuccess : kInsufficientSize;
  unsigned long long used_bytes = 0;
  cell(device, &Replay::memory, 1, 1, &used_bytes);
  // The first is the caller itself, with all of the memory; the others are strangers.
  for (unsigned index = 0; index < running; ++index) {
    infos[index] = {index == 0 ? static_cast<unsigned>(getpid()) : index, index == 0 ? used_bytes : 0, 0, 0};
  }
  const char* const second = std::getenv("PYBENCH_REPLAY_SECOND_PROCESS");
  if (second != nullptr && running > 1) {
    infos[1] = {static_cast<unsigned>(std::strtoul(second, nullptr, 10)), used_bytes, 0, 0};
  }
  return kSuccess;
}

int nvmlDeviceGetClockInfo(Device device, int clock, unsigned* mhz) {
  const int recorded = clock == kClockSm ? cell(device, &Replay::clocks, 1, 1, mhz) : kNotSupported;
  return replayed_clock_mhz(device, clock, recorded, mhz);
}

int nvmlDeviceGetTemperature(Device device, int, unsigned* celsius) {
  return cell(device, &Replay::clocks, 2, 1, celsius);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return cell(device, &Replay::clocks, 3, 1, reasons);
}

}  // extern "C"
