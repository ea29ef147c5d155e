// SPDX-License-Identifier: Apache-2.0
// The energy of any window from the driver's power samples and the steps of its energy counter, with its variance.
//
// Model. A sample stamped t reads y(t), which follows the board's power p through a first-order lag (time constant
// `response_s`), `delay_s` late. Between two samples p is taken as constant, so that it follows exactly:
//     p = (y1 - y0 q) / (1 - q),  q = exp(-dt / response_s),
// and F(t) is its running integral. A window's edge is a place where p may jump. Left of it p goes on as in the last
// whole intervals, right of it p is what the next sample asks for. G is F with that done at both edges. The counter
// says C at its steps u. D = C - G is the error of G, a random walk seen through white noise. The steps of the walk
// grow with the change between samples (a stale or late sample hurts only there). walk_smoother.hpp gives D and its
// covariance anywhere, and
//     energy(a, b) = G(b) - G(a) + D(b) - D(a).
// C - F is smoothed once for all windows. G differs from F only within the two samples around an edge and by a constant
// after them, so that D follows from the smoother's answer to that step. (Taking C - F for D makes the counter
// "correct" what G has put right already: windows of 0.2 s then read 1 % low.) Equations and error terms:
// docs/method/energy.md. It does not read channels, find the counter's grid or know uncertainties of the sensor's own
// parameters: pybench.measure.energy.integration does, by asking again with each of them moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "walk_smoother.hpp"

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
  double samples_j;             // G(b) - G(a): what the samples alone say
  double interior_variance_j2;  // of the samples' own integral, before the counter
  double fused_variance_j2;     // after it
  double drift_w;               // linear trend of p from the window's begin to its end; 0 for fewer than 5 intervals
  double drift_variance_w2;     // of that trend, from what the line leaves
  double edge_variance_j2;      // of p's continuation up to the two edges, or past the samples
  std::uint32_t doubts;
};

class EnergyIntegrator {
 public:
  // `times_s` strictly increasing, both of one length >= 3, all finite; `steps` in order of time, finite too;
  // `response_s` and `counter_noise_j` > 0. Throws std::invalid_argument otherwise.
  EnergyIntegrator(const std::vector<double>& times_s, std::vector<double> power_w, std::vector<CounterStep> steps,
                   SensorModel model);

  // The energy between two times, begin_s <= end_s. Constant time but for four binary searches. `with_variances`: else
  // variances and drift are left at 0, which takes half the time.
  WindowEnergy energy(double begin_s, double end_s, bool with_variances = true) const;

 private:
  // G around one edge.
  struct Edge {
    std::size_t knot;    // the last knot at or before the edge (or the first)
    double past_s;       // since that knot
    double left_j;       // G from that knot to the edge
    double right_j;      // and from the edge to the next knot
    double shift_j;      // G - F from the next knot on
    double variance_j2;  // of left_j
  };

  void check(const std::vector<double>& times_s) const;
  void integrate_samples();
  void compare_with_counter();
  double step_noise(const CounterStep& step, std::size_t knot) const;
  Edge edge_at(double time_s, std::size_t first_knot) const;
  Edge open_edge(std::size_t knot, double past_s, double power_w) const;
  std::size_t first_step_after(double time_s) const;
  double answer_to_edge(const WalkSmoother::Place& begin, const WalkSmoother::Place& end, const Edge& edge,
                        std::size_t next_step) const;
  void fit_trend(std::size_t first, std::size_t last, WindowEnergy& into) const;
  bool gap_between(std::size_t first, std::size_t last) const;

  SensorModel model_;
  double range_w_ = 0;             // largest less least sample
  std::vector<double> knots_s_;    // times of the samples, less the delay
  std::vector<double> sensed_w_;   // y
  std::vector<double> power_w_;    // p right of each knot, one fewer
  std::vector<double> until_j_;    // F at each knot
  std::vector<double> walked_j2_;  // variance of the walk since the first knot
  // Of p over time since the first knot, each interval weighing its length. A trend over 0.2 s is a small difference of
  // these at the end of a day: 53 bits would leave nothing of it.
  struct Moments {
    long double time2_s2, power_w, power_time_ws, power2_w2;
  };
  std::vector<Moments> moments_;   // integrals up to each knot
  std::vector<std::size_t> gaps_;  // knots at which an interval longer than a gap begins
  std::vector<CounterStep> steps_;
  WalkSmoother counter_;  // of C - F at the steps
};

}  // namespace pybench
