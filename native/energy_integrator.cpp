// SPDX-License-Identifier: Apache-2.0
// Implements energy_integrator.hpp.
#include "energy_integrator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace pybench {
namespace {

constexpr std::size_t kLeftIntervals = 2;    // averaged to continue p up to an edge: one more halves the noise,
                                             // many more would follow a changing load too late
constexpr std::size_t kSpreadIntervals = 4;  // whose differences say how far p wanders in one interval
constexpr double kGapShare = 0.29;           // standard deviation of a uniform value, as a share of its range
constexpr double kUnseenShare = 0.58;        // and of a uniform difference, up to the range either way
constexpr std::size_t kFewestForTrend = 5;   // intervals: three degrees of freedom
constexpr double kReach_s = 0.1;             // how far an edge may lie outside the samples
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double square(double value) { return value * value; }

}  // namespace

EnergyIntegrator::EnergyIntegrator(const std::vector<double>& times_s, std::vector<double> power_w,
                                   std::vector<CounterStep> steps, SensorModel model)
    : model_(model), sensed_w_(std::move(power_w)), steps_(std::move(steps)) {
  check(times_s);
  knots_s_.reserve(times_s.size());
  for (const double time_s : times_s) knots_s_.push_back(time_s - model.delay_s);
  integrate_samples();
  compare_with_counter();
}

void EnergyIntegrator::check(const std::vector<double>& times_s) const {
  if (times_s.size() != sensed_w_.size() || times_s.size() < 3) {
    throw std::invalid_argument("needs at least three samples, each with its time");
  }
  if (!(model_.response_s > 0)) throw std::invalid_argument("the sensor's response must be longer than nothing");
  for (std::size_t i = 0; i < times_s.size(); ++i) {
    if (!std::isfinite(times_s[i]) || !std::isfinite(sensed_w_[i]))
      throw std::invalid_argument("a sample is not finite");
    if (i > 0 && !(times_s[i] > times_s[i - 1])) throw std::invalid_argument("sample times must increase");
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!std::isfinite(steps_[i].time_s) || !std::isfinite(steps_[i].energy_j)) {
      throw std::invalid_argument("a counter step is not finite");
    }
    if (i > 0 && steps_[i].time_s < steps_[i - 1].time_s) {
      throw std::invalid_argument("counter steps must be in order of time");
    }
  }
}

void EnergyIntegrator::integrate_samples() {
  const std::size_t count = knots_s_.size();
  const auto [least, most] = std::ranges::minmax(sensed_w_);
  range_w_ = most - least;
  power_w_.resize(count - 1);
  until_j_.assign(count, 0);
  moments_.assign(count, {});
  walked_j2_.assign(count, 0);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const double length_s = knots_s_[i + 1] - knots_s_[i];
    const double kept = std::exp(-length_s / model_.response_s);
    power_w_[i] = (sensed_w_[i + 1] - sensed_w_[i] * kept) / (1 - kept);
    until_j_[i + 1] = until_j_[i] + power_w_[i] * length_s;
    const long double middle_s = (knots_s_[i] + knots_s_[i + 1]) / 2 - knots_s_[0], weighed_w = power_w_[i] * length_s;
    const Moments& until = moments_[i];
    moments_[i + 1] = {until.time2_s2 + middle_s * middle_s * length_s, until.power_w + weighed_w,
                       until.power_time_ws + weighed_w * middle_s, until.power2_w2 + weighed_w * power_w_[i]};
    double variance_j2 =
        square(model_.sample_noise_w * length_s) + square(model_.stamp_jitter_s * (sensed_w_[i + 1] - sensed_w_[i]));
    if (length_s > model_.longest_gap_s) {
      gaps_.push_back(i);
      variance_j2 += square(kGapShare * range_w_ * length_s);
    }
    walked_j2_[i + 1] = walked_j2_[i] + variance_j2;
  }
}

void EnergyIntegrator::compare_with_counter() {
  // Steps outside the samples have nothing to be compared with.
  const double first_s = knots_s_.front(), last_s = knots_s_.back();
  std::erase_if(steps_, [&](const CounterStep& step) { return step.time_s < first_s || step.time_s > last_s; });
  std::vector<WalkObservation> seen;
  seen.reserve(steps_.size());
  for (const CounterStep& step : steps_) {
    const auto after = std::ranges::upper_bound(knots_s_, step.time_s);
    const std::size_t knot = std::min<std::size_t>(after - knots_s_.begin() - 1, power_w_.size() - 1);
    const double part_s = step.time_s - knots_s_[knot];
    const double share = part_s / (knots_s_[knot + 1] - knots_s_[knot]);
    const double walked_j2 = walked_j2_[knot] + (walked_j2_[knot + 1] - walked_j2_[knot]) * share;
    const double integral_j = until_j_[knot] + power_w_[knot] * part_s;
    seen.push_back({walked_j2, step_noise(step, knot), step.energy_j - integral_j, step.segment});
  }
  counter_ = WalkSmoother(std::move(seen));
}

double EnergyIntegrator::step_noise(const CounterStep& step, std::size_t knot) const {
  double least_w = power_w_[knot], most_w = least_w;
  for (std::size_t near = knot > 1 ? knot - 2 : 0; near < std::min(knot + 3, power_w_.size()); ++near) {
    least_w = std::min(least_w, power_w_[near]);
    most_w = std::max(most_w, power_w_[near]);
  }
  return square(model_.counter_noise_j) + square(step.u_time_s * power_w_[knot]) +
         square(model_.transient_s * (most_w - least_w));
}

// `first_knot`: intervals before it are not of the same load, and p is not continued from them.
EnergyIntegrator::Edge EnergyIntegrator::edge_at(double time_s, std::size_t first_knot) const {
  const auto after = std::ranges::upper_bound(knots_s_, time_s);
  if (after == knots_s_.begin()) return open_edge(0, time_s - knots_s_[0], sensed_w_[0]);
  const std::size_t knot = static_cast<std::size_t>(after - knots_s_.begin()) - 1;
  const double past_s = time_s - knots_s_[knot];
  const std::size_t first = std::max(knot > kLeftIntervals ? knot - kLeftIntervals : 0, first_knot);
  const bool last = knot + 1 == knots_s_.size();
  if (first >= knot) {  // what the interval holds may have been spent before the edge or after it
    Edge edge = open_edge(knot, past_s, last ? sensed_w_[knot] : power_w_[knot]);
    edge.variance_j2 += square(kUnseenShare * (edge.left_j + edge.right_j));
    return edge;
  }
  const double left_w = (until_j_[knot] - until_j_[first]) / (knots_s_[knot] - knots_s_[first]);
  if (last) return open_edge(knot, past_s, left_w);
  double spread_w2 = square(model_.sample_noise_w);
  const std::size_t from = knot > kSpreadIntervals ? knot - kSpreadIntervals : 0;
  for (std::size_t i = from + 1; i < knot; ++i) {
    spread_w2 += square(power_w_[i] - power_w_[i - 1]) / (2 * static_cast<double>(knot - from - 1));
  }
  // Right of the edge, p is what the next sample asks for, given the lag's state at the edge.
  const double rest_s = knots_s_[knot + 1] - time_s;
  const double state_w = left_w + (sensed_w_[knot] - left_w) * std::exp(-past_s / model_.response_s);
  const double kept = std::exp(-rest_s / model_.response_s);
  // p * rest without the division by a vanishing 1 - kept: it tends to response * (y1 - state) + state * rest.
  const double right_j = rest_s / -std::expm1(-rest_s / model_.response_s) * (sensed_w_[knot + 1] - state_w * kept);
  const double left_j = left_w * past_s;
  const double shift_j = left_j + right_j - power_w_[knot] * (past_s + rest_s);
  return {knot, past_s, left_j, right_j, shift_j, spread_w2 * square(past_s)};
}

// An edge at which no jump can be told: outside the samples, or with no whole interval of its load before it.
EnergyIntegrator::Edge EnergyIntegrator::open_edge(std::size_t knot, double past_s, double power_w) const {
  const double left_j = power_w * past_s;
  const double whole_j = knot < power_w_.size() ? until_j_[knot + 1] - until_j_[knot] : 0;
  return {knot, past_s, left_j, whole_j - left_j, 0, square(kUnseenShare * range_w_ * past_s)};
}

std::size_t EnergyIntegrator::first_step_after(double time_s) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(steps_, time_s, {}, &CounterStep::time_s) - steps_.begin());
}

// What C - F, smoothed, would change by from one place to the other if F were G at this edge, with the sign of `G`.
// `next_step`: the first after the edge's knot.
double EnergyIntegrator::answer_to_edge(const WalkSmoother::Place& begin, const WalkSmoother::Place& end,
                                        const Edge& edge, std::size_t next_step) const {
  if (edge.shift_j == 0) return 0;
  const double knot_s = knots_s_[edge.knot], next_s = knots_s_[edge.knot + 1];
  double answer_j = 0;
  std::size_t step = next_step;
  for (; step < steps_.size() && steps_[step].time_s < next_s; ++step) {
    const double part_s = steps_[step].time_s - knot_s, rest_s = next_s - knot_s - edge.past_s;
    const double edged_j = part_s <= edge.past_s ? edge.left_j * part_s / edge.past_s
                                                 : edge.left_j + edge.right_j * (part_s - edge.past_s) / rest_s;
    answer_j += (edged_j - power_w_[edge.knot] * part_s) *
                (counter_.answer_to_one(end, step) - counter_.answer_to_one(begin, step));
  }
  return answer_j + edge.shift_j * (counter_.answer_to_step(end, step) - counter_.answer_to_step(begin, step));
}

// Least squares line through p over the whole intervals between two knots, in constant time from the moments.
void EnergyIntegrator::fit_trend(std::size_t first, std::size_t last, WindowEnergy& into) const {
  if (last < first + kFewestForTrend) return;
  const Moments &low = moments_[first], &high = moments_[last];
  const double begin_s = knots_s_[first] - knots_s_[0], end_s = knots_s_[last] - knots_s_[0];
  const long double length_s = end_s - begin_s, mean_s = (begin_s + end_s) / 2;
  const long double mean_w = (high.power_w - low.power_w) / length_s;
  const auto spread_s2 = static_cast<double>((high.time2_s2 - low.time2_s2) / length_s - mean_s * mean_s);
  const auto together = static_cast<double>((high.power_time_ws - low.power_time_ws) / length_s - mean_s * mean_w);
  const double slope = together / spread_s2;
  const auto about_w2 = static_cast<double>((high.power2_w2 - low.power2_w2) / length_s - mean_w * mean_w);
  const double left_w2 = about_w2 - slope * together;
  const double freedom = static_cast<double>(last - first) - 2;
  into.drift_w = slope * (end_s - begin_s);
  into.drift_variance_w2 = std::max(left_w2, 0.0) / (freedom * spread_s2) * square(end_s - begin_s);
}

bool EnergyIntegrator::gap_between(std::size_t first, std::size_t last) const {
  const auto gap = std::ranges::lower_bound(gaps_, first);
  return gap != gaps_.end() && *gap <= last;
}

WindowEnergy EnergyIntegrator::energy(double begin_s, double end_s, bool with_variances) const {
  WindowEnergy result{kNothing, kNothing, 0, 0, 0, 0, 0, 0};
  if (!(begin_s >= knots_s_.front() - kReach_s && end_s <= knots_s_.back() + kReach_s && begin_s <= end_s)) {
    result.doubts = kNotCovered;
    return result;
  }
  Edge begin = edge_at(begin_s, 0), end = edge_at(end_s, begin.knot + 1);
  if (begin.knot == end.knot) {  // no sample inside: nothing tells the window's power from that around it
    const double length_s = end_s - begin_s;
    const double power_w = begin.knot < power_w_.size() ? power_w_[begin.knot] : sensed_w_.back();
    const double whole_j = begin.knot < power_w_.size() ? begin.left_j + begin.right_j : 0;
    result.samples_j = power_w * length_s;
    result.edge_variance_j2 = square(kUnseenShare) * (square(range_w_ * length_s) + square(whole_j));
    begin.shift_j = end.shift_j = 0;
  } else {
    result.samples_j = begin.right_j + until_j_[end.knot] - until_j_[begin.knot + 1] + end.left_j;
    result.edge_variance_j2 = begin.variance_j2 + end.variance_j2;
    if (with_variances) fit_trend(begin.knot + 1, end.knot, result);
  }
  result.interior_variance_j2 = walked_j2_[end.knot] - walked_j2_[begin.knot];
  result.fused_variance_j2 = result.interior_variance_j2;
  result.energy_j = result.samples_j;
  if (gap_between(begin.knot, end.knot)) result.doubts |= kGap;
  if (steps_.empty()) {
    result.doubts |= kNoCounter;
    return result;
  }
  const std::size_t next_from = first_step_after(knots_s_[begin.knot]), next_to = first_step_after(knots_s_[end.knot]);
  const auto from = counter_.place(next_from, walked_j2_[begin.knot]);
  const auto to = counter_.place(next_to, walked_j2_[end.knot]);
  if (counter_.segment(from) != counter_.segment(to)) {
    result.doubts |= kCounterReset;
    return result;
  }
  result.energy_j += counter_.value_j(to) - counter_.value_j(from) - answer_to_edge(from, to, begin, next_from) -
                     answer_to_edge(from, to, end, next_to);
  if (with_variances) result.fused_variance_j2 = counter_.difference_variance_j2(from, to);
  if (from.left == to.left && !from.inside && !to.inside) result.doubts |= kNoCounter;
  return result;
}

}  // namespace pybench
