// SPDX-License-Identifier: Apache-2.0
// The whole boundary between Python and C++: convert, release the GIL, call, map errors. No logic lives here.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "clock.hpp"
#include "counter_schedule.hpp"
#include "cuda_bindings.hpp"
#include "energy_integrator.hpp"
#include "nvml.hpp"
#include "own_process.hpp"
#include "perf_counter.hpp"
#include "power_sampler.hpp"
#include "rail_sampler.hpp"
#include "recovery_bindings.hpp"
#include "timer.hpp"

namespace py = pybind11;
using namespace pybench;

namespace {

using WithoutGil = py::call_guard<py::gil_scoped_release>;

// One column of a table: `read` takes a row and gives a number.
template <typename Number, typename Row, typename Read>
py::array_t<Number> column(const std::vector<Row>& rows, Read read) {
  py::array_t<Number> array(static_cast<py::ssize_t>(rows.size()));
  Number* out = array.mutable_data();
  for (const Row& row : rows) *out++ = static_cast<Number>(read(row));
  return array;
}

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

template <typename Row, typename Number>
void add_column(py::dict& table, const char* name, const std::vector<Row>& rows, Number Row::* member) {
  table[name] = column<Number>(rows, [member](const Row& row) { return row.*member; });
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

// int64 [n, 3]: due, begin and end of each call.
py::array_t<std::int64_t> timed_calls(const py::object& work, std::int64_t iterations, std::int64_t minimum_ns,
                                      const py::array_t<std::int64_t, py::array::c_style>& due_ns) {
  bool failed = false;
  const Pace pace{iterations, minimum_ns, {due_ns.data(), due_ns.data() + due_ns.size()}};
  const auto times = time_calls(work.ptr(), pace, failed);
  if (failed) throw py::error_already_set();
  py::array_t<std::int64_t> array({static_cast<py::ssize_t>(times.size()), py::ssize_t{3}});
  std::int64_t* out = array.mutable_data();
  for (const CallTime& time : times) {
    *out++ = time.due_ns;
    *out++ = time.begin_ns;
    *out++ = time.end_ns;
  }
  return array;
}

void sleep_until(std::int64_t deadline_ns) {
  for (bool done = false; !done;) {
    {
      const py::gil_scoped_release release;
      done = sleep_until_ns(deadline_ns);
    }
    if (!done && PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

void bind_clock_and_timer(py::module_& module) {
  module.def("monotonic_raw_ns", &monotonic_raw_ns);
  py::class_<RealtimeAnchor>(module, "RealtimeAnchor")
      .def_readonly("monotonic_raw_ns", &RealtimeAnchor::monotonic_raw_ns)
      .def_readonly("realtime_ns", &RealtimeAnchor::realtime_ns)
      .def_readonly("uncertainty_ns", &RealtimeAnchor::uncertainty_ns);
  module.def("anchor_realtime", &anchor_realtime);
  module.def("sleep_until_ns", &sleep_until, py::arg("deadline_ns"));
  module.def("time_calls", &timed_calls, py::arg("work"), py::arg("iterations"), py::arg("minimum_ns"),
             py::arg("due_ns"));
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

// For simulating what a schedule costs and finds: bench/energy/counter_cadence.py.
void bind_counter_schedule(py::module_& module) {
  const auto note = [](CounterSchedule& schedule, std::int64_t begin_ns, std::int64_t end_ns, double energy_mj,
                       bool due) { schedule.note({begin_ns, end_ns, {nvml::kSuccess, energy_mj}}, due); };
  py::class_<OwnProcess>(module, "OwnProcess")
      .def(py::init(&OwnProcess::find), py::arg("proc") = "/proc")
      .def(
          "of",
          [](const OwnProcess& own, std::uint32_t process_id, const std::vector<std::uint32_t>& listed) {
            return is_own(own.of(process_id, listed));
          },
          py::arg("process_id"), py::arg("listed"));

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

using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Integers = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

std::vector<double> to_vector(const Doubles& array) { return {array.data(), array.data() + array.size()}; }

// Every window's energy as a table of columns; see energy_integrator.hpp.
py::dict integrate_energy(const Doubles& times_s, const Doubles& power_w, const Doubles& step_times_s,
                          const Doubles& step_u_times_s, const Doubles& step_energies_j, const Integers& step_segments,
                          const SensorModel& model, const Doubles& begins_s, const Doubles& ends_s,
                          bool with_variances) {
  const auto count = static_cast<std::size_t>(step_times_s.size());
  if (static_cast<std::size_t>(step_u_times_s.size()) != count ||
      static_cast<std::size_t>(step_energies_j.size()) != count ||
      static_cast<std::size_t>(step_segments.size()) != count || begins_s.size() != ends_s.size()) {
    throw std::invalid_argument("columns of one table must be equally long");
  }
  std::vector<CounterStep> steps(count);
  for (std::size_t i = 0; i < count; ++i) {
    steps[i] = {step_times_s.data()[i], step_u_times_s.data()[i], step_energies_j.data()[i], step_segments.data()[i]};
  }
  std::vector<double> times = to_vector(times_s), power = to_vector(power_w);
  const std::vector<double> begins = to_vector(begins_s), ends = to_vector(ends_s);
  std::vector<WindowEnergy> windows(begins.size());
  {
    const py::gil_scoped_release release;
    const EnergyIntegrator integrator(times, std::move(power), std::move(steps), model);
    for (std::size_t i = 0; i < windows.size(); ++i) {
      windows[i] = integrator.energy(begins[i], ends[i], with_variances);
    }
  }
  py::dict table;
  add_column(table, "energy_j", windows, &WindowEnergy::energy_j);
  add_column(table, "samples_j", windows, &WindowEnergy::samples_j);
  add_column(table, "interior_variance_j2", windows, &WindowEnergy::interior_variance_j2);
  add_column(table, "fused_variance_j2", windows, &WindowEnergy::fused_variance_j2);
  add_column(table, "drift_w", windows, &WindowEnergy::drift_w);
  add_column(table, "drift_variance_w2", windows, &WindowEnergy::drift_variance_w2);
  add_column(table, "edge_variance_j2", windows, &WindowEnergy::edge_variance_j2);
  add_column(table, "doubts", windows, &WindowEnergy::doubts);
  return table;
}

void bind_integrator(py::module_& module) {
  py::class_<SensorModel>(module, "SensorModel")
      .def(py::init<double, double, double, double, double, double, double>(), py::kw_only(), py::arg("delay_s"),
           py::arg("response_s"), py::arg("stamp_jitter_s"), py::arg("sample_noise_w"), py::arg("counter_noise_j"),
           py::arg("transient_s"), py::arg("longest_gap_s"));
  module.def("integrate_energy", &integrate_energy, py::arg("times_s"), py::arg("power_w"), py::arg("step_times_s"),
             py::arg("step_u_times_s"), py::arg("step_energies_j"), py::arg("step_segments"), py::arg("model"),
             py::arg("begins_s"), py::arg("ends_s"), py::arg("with_variances") = true);
  module.attr("DOUBT_NOT_COVERED") = static_cast<unsigned>(kNotCovered);
  module.attr("DOUBT_GAP") = static_cast<unsigned>(kGap);
  module.attr("DOUBT_COUNTER_RESET") = static_cast<unsigned>(kCounterReset);
  module.attr("DOUBT_NO_COUNTER") = static_cast<unsigned>(kNoCounter);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "What Python must not disturb while it is measured. See pybench.measure for the interface.";
  module.attr("BUILD_ID") = PYBENCH_BUILD_ID;
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const std::system_error& error) {
      errno = error.code().value();
      PyErr_SetFromErrno(PyExc_OSError);
    }
  });
  bind_clock_and_timer(module);
  bind_cuda(module);
  bind_nvml(module);
  bind_counter_schedule(module);
  bind_sampler(module);
  bind_rails(module);
  bind_integrator(module);
  bind_recovery(module);
  py::class_<PerfCounter>(module, "PerfCounter")
      .def(py::init<std::uint32_t, std::uint64_t, int>(), py::arg("type_number"), py::arg("config"), py::arg("cpu"))
      .def("read", &PerfCounter::read, WithoutGil());
}
