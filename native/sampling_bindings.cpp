// SPDX-License-Identifier: Apache-2.0
// The part of the boundary between Python and C++ that is about sampling of power: convert, release the GIL, call. No
// logic lives here.
#include "sampling_bindings.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "columns.hpp"
#include "counter_schedule.hpp"
#include "nvml.hpp"
#include "own_process.hpp"
#include "power_sampler.hpp"
#include "rail_sampler.hpp"

namespace py = pybind11;

namespace pybench {
namespace {

using WithoutGil = py::call_guard<py::gil_scoped_release>;

std::optional<bool> is_own(Ownership ownership) {
  if (ownership == Ownership::kUnknown) return std::nullopt;
  return ownership == Ownership::kOwn;
}

double value_or_nan(const Reading& reading) {
  return reading.code == nvml::kSuccess ? reading.value : std::numeric_limits<double>::quiet_NaN();
}

// A nullable reading as two columns: the value, NaN where there is none, and NVML's code.
template <typename Row>
void add_reading(py::dict& table, const char* name, const std::vector<Row>& rows, Reading Row::* member) {
  table[name] = column<double>(rows, [member](const Row& row) { return value_or_nan(row.*member); });
  table[py::str(std::string(name) + "_code")] =
      column<std::int32_t>(rows, [member](const Row& row) { return (row.*member).code; });
}

py::dict driver_samples(const PowerSampler& sampler) {
  const auto rows = sampler.driver_samples();
  py::dict table;
  add_column(table, "time_ns", rows, &DriverSample::time_ns);
  add_column(table, "realtime_us", rows, &DriverSample::realtime_us);
  add_column(table, "power_mw", rows, &DriverSample::power_mw);
  return table;
}

py::dict polled(const PowerSampler& sampler) {
  const auto rows = sampler.polled();
  py::dict table;
  add_column(table, "begin_ns", rows, &PolledPower::begin_ns);
  add_column(table, "end_ns", rows, &PolledPower::end_ns);
  static constexpr std::array kNames = {"instant",        "average",        "memory_instant",
                                        "memory_average", "module_instant", "module_average"};
  static_assert(kNames.size() == kPowerFields.size());
  for (std::size_t field = 0; field < kNames.size(); ++field) {
    const std::string name = kNames[field];
    const auto at = [field](const PolledPower& row) -> const FieldReading& { return row.fields[field]; };
    table[py::str(name + "_mw")] =
        column<double>(rows, [&](const PolledPower& row) { return value_or_nan(at(row).reading); });
    table[py::str(name + "_code")] =
        column<std::int32_t>(rows, [&](const PolledPower& row) { return at(row).reading.code; });
    table[py::str(name + "_realtime_us")] =
        column<std::int64_t>(rows, [&](const PolledPower& row) { return at(row).realtime_us; });
  }
  return table;
}

py::dict counter(const PowerSampler& sampler) {
  const auto rows = sampler.counter();
  py::dict table;
  add_column(table, "begin_ns", rows, &CounterReading::begin_ns);
  add_column(table, "end_ns", rows, &CounterReading::end_ns);
  add_reading(table, "energy_mj", rows, &CounterReading::energy_mj);
  return table;
}

py::dict drains(const PowerSampler& sampler) {
  const auto rows = sampler.drains();
  py::dict table;
  add_column(table, "time_ns", rows, &DrainRecord::time_ns);
  add_column(table, "realtime_ns", rows, &DrainRecord::realtime_ns);
  add_column(table, "anchor_uncertainty_ns", rows, &DrainRecord::anchor_uncertainty_ns);
  add_column(table, "samples", rows, &DrainRecord::samples);
  add_column(table, "stepped_ns", rows, &DrainRecord::stepped_ns);
  add_column(table, "lost", rows, &DrainRecord::lost);
  add_column(table, "code", rows, &DrainRecord::code);
  return table;
}

py::dict processes(const PowerSampler& sampler) {
  const auto rows = sampler.processes();
  py::dict table;
  add_column(table, "time_ns", rows, &ProcessRow::time_ns);
  add_reading(table, "process_id", rows, &ProcessRow::process_id);
  add_reading(table, "used_bytes", rows, &ProcessRow::used_bytes);
  table["own"] = column<double>(rows, [](const ProcessRow& row) {
    const std::optional<bool> own = is_own(row.ownership);
    return own ? static_cast<double>(*own) : std::numeric_limits<double>::quiet_NaN();
  });
  return table;
}

py::dict states(const PowerSampler& sampler) {
  const auto rows = sampler.states();
  py::dict table;
  add_column(table, "time_ns", rows, &DeviceState::time_ns);
  add_reading(table, "sm_clock_mhz", rows, &DeviceState::sm_clock_mhz);
  add_reading(table, "memory_clock_mhz", rows, &DeviceState::memory_clock_mhz);
  add_reading(table, "temperature_c", rows, &DeviceState::temperature_c);
  add_reading(table, "throttle_reasons", rows, &DeviceState::throttle_reasons);
  add_reading(table, "power_limit_mw", rows, &DeviceState::power_limit_mw);
  add_reading(table, "memory_used_bytes", rows, &DeviceState::memory_used_bytes);
  add_reading(table, "own_memory_bytes", rows, &DeviceState::own_memory_bytes);
  add_reading(table, "process_count", rows, &DeviceState::process_count);
  add_reading(table, "utilisation_percent", rows, &DeviceState::utilisation_percent);
  return table;
}

py::dict rail_readings(const RailSampler& sampler) {
  const auto rows = sampler.readings();
  py::dict table;
  add_column(table, "begin_ns", rows, &RailReading::begin_ns);
  add_column(table, "end_ns", rows, &RailReading::end_ns);
  add_column(table, "code", rows, &RailReading::code);
  add_column(table, "value", rows, &RailReading::value);
  return table;
}

void bind_nvml(py::module_& module) {
  py::class_<Reading>(module, "Reading")
      .def_readonly("code", &Reading::code)
      .def_property_readonly("value", [](const Reading& reading) -> py::object {
        return reading.code == nvml::kSuccess ? py::object(py::float_(reading.value)) : py::none();
      });
  py::class_<CounterReading>(module, "CounterReading")
      .def_readonly("begin_ns", &CounterReading::begin_ns)
      .def_readonly("end_ns", &CounterReading::end_ns)
      .def_readonly("energy_mj", &CounterReading::energy_mj);
  py::class_<DeviceProcess>(module, "DeviceProcess")
      .def_readonly("process_id", &DeviceProcess::process_id)
      .def_readonly("used_bytes", &DeviceProcess::used_bytes);
  py::class_<NvmlDevice>(module, "NvmlDevice")
      .def_property_readonly("index", &NvmlDevice::index)
      .def_property_readonly("uuid", &NvmlDevice::uuid)
      .def_property_readonly("name", &NvmlDevice::name)
      .def("energy_counter", &NvmlDevice::energy_counter, WithoutGil())
      .def("power_mw", &NvmlDevice::power_mw, py::arg("field"), py::arg("scope") = nvml::kScopeGpu, WithoutGil())
      .def("processes", [](const NvmlDevice& device) {
        const Processes processes = [&] {
          const py::gil_scoped_release release;
          return device.processes();
        }();
        return py::make_tuple(processes.code, py::cast(processes.list));
      });
  py::class_<NvmlLibrary, std::shared_ptr<NvmlLibrary>>(module, "NvmlLibrary")
      .def_property_readonly("available", &NvmlLibrary::available)
      .def_property_readonly("reason", &NvmlLibrary::reason)
      .def_property_readonly("path", &NvmlLibrary::path)
      .def_property_readonly("driver_version", &NvmlLibrary::driver_version)
      .def("describe", &NvmlLibrary::describe, py::arg("code"))
      .def("devices", &NvmlLibrary::devices, WithoutGil());
  module.def("open_nvml", &NvmlLibrary::open, py::arg("path") = "", WithoutGil());
  module.attr("FIELD_POWER_AVERAGE") = nvml::kFieldPowerAverage;
  module.attr("FIELD_POWER_INSTANT") = nvml::kFieldPowerInstant;
}

// Whether a process that NVML lists is this one or one that it started; see own_process.hpp.
void bind_own_process(py::module_& module) {
  py::class_<OwnProcess>(module, "OwnProcess")
      .def(py::init(&OwnProcess::find), py::arg("proc") = "/proc")
      .def(
          "of",
          [](const OwnProcess& own, std::uint32_t process_id, const std::vector<std::uint32_t>& listed) {
            return is_own(own.of(process_id, listed));
          },
          py::arg("process_id"), py::arg("listed"));
}

// For simulating what a schedule costs and finds: bench/energy/counter_cadence.py.
void bind_counter_schedule(py::module_& module) {
  const auto note = [](CounterSchedule& schedule, std::int64_t begin_ns, std::int64_t end_ns, double energy_mj,
                       bool due) { schedule.note({begin_ns, end_ns, {nvml::kSuccess, energy_mj}}, due); };
  py::class_<TickBracket>(module, "TickBracket")
      .def_readonly("low_ns", &TickBracket::low_ns)
      .def_readonly("high_ns", &TickBracket::high_ns);
  py::class_<TickGrid>(module, "TickGrid")
      .def_property_readonly("latest", &TickGrid::latest)
      .def_property_readonly("shortest_period_ns", &TickGrid::shortest_period_ns)
      .def_property_readonly("longest_period_ns", &TickGrid::longest_period_ns);
  py::class_<CounterSchedule>(module, "CounterSchedule")
      .def(py::init<std::int64_t>(), py::arg("interval_ns"))
      .def("track", &CounterSchedule::track, py::arg("now_ns"), py::arg("until_ns"))
      .def("note", note, py::arg("begin_ns"), py::arg("end_ns"), py::arg("energy_mj"), py::arg("due"))
      .def_property_readonly("due_ns", &CounterSchedule::due_ns)
      .def_property_readonly("grid", &CounterSchedule::grid);
}

void bind_sampler(py::module_& module) {
  py::class_<PowerSampler>(module, "PowerSampler")
      .def(py::init([](const NvmlDevice& device, std::int64_t power_ns, std::int64_t counter_ns, std::int64_t state_ns,
                       std::int64_t expected_ns) {
             return std::make_unique<PowerSampler>(device, SamplerIntervals{power_ns, counter_ns, state_ns},
                                                   expected_ns);
           }),
           py::arg("device"), py::arg("power_interval_ns"), py::arg("counter_interval_ns"),
           py::arg("state_interval_ns"), py::arg("expected_ns"))
      .def("start", &PowerSampler::start, WithoutGil())
      .def("stop", &PowerSampler::stop, WithoutGil())
      .def("read_counter", &PowerSampler::read_counter, WithoutGil())
      .def("track_counter", &PowerSampler::track_counter, py::arg("duration_ns"), WithoutGil())
      .def("driver_samples", &driver_samples)
      .def("drains", &drains)
      .def("processes", &processes)
      .def_property_readonly("tick_grid", &PowerSampler::tick_grid)
      .def("polled", &polled)
      .def("counter", &counter)
      .def("states", &states)
      .def_property_readonly("samples_code", &PowerSampler::samples_code)
      .def_property_readonly("missed_ticks", &PowerSampler::missed_ticks)
      .def_property_readonly("failure", &PowerSampler::failure);
}

void bind_rails(py::module_& module) {
  py::class_<RailSampler>(module, "RailSampler")
      .def(py::init<std::vector<std::string>, std::int64_t, std::int64_t>(), py::arg("paths"), py::arg("interval_ns"),
           py::arg("expected_ns"))
      .def("start", &RailSampler::start, WithoutGil())
      .def("stop", &RailSampler::stop, WithoutGil())
      .def("readings", &rail_readings)
      .def_property_readonly("missed_ticks", &RailSampler::missed_ticks)
      .def_property_readonly("failure", &RailSampler::failure);
}

}  // namespace

void bind_sampling(py::module_& module) {
  bind_nvml(module);
  bind_own_process(module);
  bind_counter_schedule(module);
  bind_sampler(module);
  bind_rails(module);
}

}  // namespace pybench
