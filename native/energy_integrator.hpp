// SPDX-License-Identifier: Apache-2.0
// The energy of any window from the driver's power samples and the steps of its energy counter, with its variance.
//
// Model. A sample stamped t reads y(t), which follows the board's power p through a first-order lag (time constant
// `response_s`), `delay_s` late. Between two samples p is taken as constant, so that it follows exactly:
//     p = (y1 - y0 q) / (1 - q),  q = exp(-dt / response_s),
// and F(t) is its running integral. A window's edge is a place where p may jump: left of it p goes on as in the last
// whole interval, right of it p is what the next sample asks for. The counter says C at its steps u; D = C - F is the
// error of F, a random walk whose steps grow with the change between samples (a stale or late sample hurts only there),
// seen through white noise. A Kalman smoother (Rauch, Tung, Striebel 1965) gives D and its covariance everywhere, and
//     energy(a, b) = F(b) - F(a) + D(b) - D(a).
// Equations and error terms: docs/method.md. It does not read channels, find the counter's grid or know uncertainties
// of the sensor's own parameters: pybench.measure.integration does, by asking again with each of them moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pybench {

struct SensorModel {
  double delay_s;          // of a sample behind the board's power
  double response_s;       // time constant, > 0
  double stamp_jitter_s;   // root mean square age of stale samples
  double sample_noise_w;   // standard deviation of a sample at constant power
  double counter_noise_j;  // standard deviation of a step's energy at constant power
  double transient_s;      // standard deviation of a counter step's time where power changes
  double longest_gap_s;    // more than this between two samples is a gap
};

struct CounterStep {
  double time_s;         // the energy was spent until then: the counter's own delay is taken off already
  double u_time_s;       // standard deviation of that time
  double energy_j;       // the counter's value, continued over resets by the caller's `segment`
  std::int64_t segment;  // steps of different segments cannot be compared (the counter was reset between them)
};

// Why a window's energy cannot be trusted, as bits.
enum WindowDoubt : std::uint32_t {
  kNotCovered = 1,    // samples do not reach over the window; no energy
  kGap = 2,           // samples are missing inside it
  kCounterReset = 4,  // the counter went back inside it; samples only
  kNoCounter = 8,     // no step of the counter near enough to correct the samples
};

struct WindowEnergy {
  double energy_j;              // NaN with kNotCovered
  double samples_j;             // F(b) - F(a): what the samples alone say
  double interior_variance_j2;  // of the samples' own integral, before the counter
  double fused_variance_j2;     // after it
  double drift_w;               // linear trend of p from the window's begin to its end; 0 for fewer than 5 intervals
  double drift_variance_w2;     // of that trend, from what the line leaves
  double edge_variance_j2;      // of p's continuation up to the two edges
  std::uint32_t doubts;
};

class EnergyIntegrator {
 public:
  // `times_s` strictly increasing, both of one length >= 3, all finite; `steps` in order of time.
  // Throws std::invalid_argument otherwise.
  EnergyIntegrator(const std::vector<double>& times_s, std::vector<double> power_w, std::vector<CounterStep> steps,
                   SensorModel model);

  // The energy between two times, begin_s <= end_s. Constant time but for two binary searches.
  WindowEnergy energy(double begin_s, double end_s) const;

 private:
  struct Edge {
    std::size_t knot;    // the last knot at or before the edge
    double left_w;       // p just left of it
    double until_j;      // F at the edge, from the left
    double variance_j2;  // of that continuation
  };
  // D at a place of the random walk's own time: between (or beyond) two steps of the counter.
  struct Place {
    std::size_t step;  // the step left of it (or the first)
    double weight;     // of the step right of it
    double bridge_j2;  // variance given both steps
    double walked_j2;  // the walk's variance since the first knot
    bool inside;       // between two steps of one segment
  };

  void integrate_samples();
  void smooth();
  void filter_segment(std::size_t first, std::size_t last, const std::vector<double>& walked,
                      const std::vector<double>& raw);
  Edge edge_at(double time_s) const;
  Place place_at(std::size_t knot) const;
  double covariance(std::size_t i, std::size_t j) const;
  double difference_variance(const Place& begin, const Place& end) const;
  double at(const Place& place) const;
  void fit_trend(std::size_t first, std::size_t last, WindowEnergy& into) const;
  bool gap_between(std::size_t first, std::size_t last) const;

  SensorModel model_;
  std::vector<double> knots_s_;    // times of the samples, less the delay
  std::vector<double> sensed_w_;   // y
  std::vector<double> power_w_;    // p right of each knot, one fewer
  std::vector<double> until_j_;    // F at each knot
  std::vector<double> walked_j2_;  // variance of the walk since the first knot
  struct Moments {                 // of p over time since the first knot, each interval weighing its length
    double time2_s2, power_w, power_time_ws, power2_w2;
  };
  std::vector<Moments> moments_;   // integrals up to each knot
  std::vector<std::size_t> gaps_;  // knots at which an interval longer than a gap begins
  std::vector<CounterStep> steps_;
  std::vector<double> step_walked_j2_;  // the walk's variance at each step
  std::vector<double> error_j_;         // D smoothed at each step
  std::vector<double> variance_j2_;     // and its variance
  std::vector<double> log_gain_;        // prefix sums of the logarithm of the smoother's gain
};

}  // namespace pybench
