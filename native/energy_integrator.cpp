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
constexpr std::size_t kFewestForTrend = 5;   // intervals: three degrees of freedom
constexpr double kReach_s = 0.1;             // how far an edge may lie outside the samples
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double square(double value) { return value * value; }

}  // namespace

EnergyIntegrator::EnergyIntegrator(const std::vector<double>& times_s, std::vector<double> power_w,
                                   std::vector<CounterStep> steps, SensorModel model)
    : model_(model), sensed_w_(std::move(power_w)), steps_(std::move(steps)) {
  if (times_s.size() != sensed_w_.size() || times_s.size() < 3) {
    throw std::invalid_argument("needs at least three samples, each with its time");
  }
  if (!(model.response_s > 0)) throw std::invalid_argument("the sensor's response must be longer than nothing");
  for (std::size_t i = 1; i < times_s.size(); ++i) {
    if (!(times_s[i] > times_s[i - 1])) throw std::invalid_argument("sample times must increase");
  }
  for (std::size_t i = 1; i < steps_.size(); ++i) {
    if (steps_[i].time_s < steps_[i - 1].time_s) throw std::invalid_argument("counter steps must be in order of time");
  }
  knots_s_.reserve(times_s.size());
  for (const double time_s : times_s) knots_s_.push_back(time_s - model.delay_s);
  integrate_samples();
  smooth();
}

void EnergyIntegrator::integrate_samples() {
  const std::size_t count = knots_s_.size();
  const auto [least, most] = std::ranges::minmax(sensed_w_);
  power_w_.resize(count - 1);
  until_j_.assign(count, 0);
  moments_.assign(count, {});
  walked_j2_.assign(count, 0);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const double length_s = knots_s_[i + 1] - knots_s_[i];
    const double kept = std::exp(-length_s / model_.response_s);
    power_w_[i] = (sensed_w_[i + 1] - sensed_w_[i] * kept) / (1 - kept);
    until_j_[i + 1] = until_j_[i] + power_w_[i] * length_s;
    const double middle_s = (knots_s_[i] + knots_s_[i + 1]) / 2 - knots_s_[0];
    moments_[i + 1] = {moments_[i].time2_s2 + square(middle_s) * length_s, moments_[i].power_w + power_w_[i] * length_s,
                       moments_[i].power_time_ws + power_w_[i] * middle_s * length_s,
                       moments_[i].power2_w2 + square(power_w_[i]) * length_s};
    double variance_j2 =
        square(model_.sample_noise_w * length_s) + square(model_.stamp_jitter_s * (sensed_w_[i + 1] - sensed_w_[i]));
    if (length_s > model_.longest_gap_s) {
      gaps_.push_back(i);
      variance_j2 += square(kGapShare * (most - least) * length_s);
    }
    walked_j2_[i + 1] = walked_j2_[i] + variance_j2;
  }
}

void EnergyIntegrator::smooth() {
  // Steps outside the samples have nothing to be compared with.
  const double first_s = knots_s_.front(), last_s = knots_s_.back();
  std::erase_if(steps_, [&](const CounterStep& step) { return step.time_s < first_s || step.time_s > last_s; });
  const std::size_t count = steps_.size();
  std::vector<double> noise_j2(count), raw_j(count);
  step_walked_j2_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double time_s = steps_[i].time_s;
    const auto after = std::ranges::upper_bound(knots_s_, time_s);
    const std::size_t knot = std::min<std::size_t>(after - knots_s_.begin() - 1, power_w_.size() - 1);
    const double part_s = time_s - knots_s_[knot];
    raw_j[i] = steps_[i].energy_j - (until_j_[knot] + power_w_[knot] * part_s);
    step_walked_j2_[i] =
        walked_j2_[knot] + (walked_j2_[knot + 1] - walked_j2_[knot]) * part_s / (knots_s_[knot + 1] - knots_s_[knot]);
    double least_w = power_w_[knot], most_w = least_w;
    for (std::size_t near = knot > 1 ? knot - 2 : 0; near < std::min(knot + 3, power_w_.size()); ++near) {
      least_w = std::min(least_w, power_w_[near]);
      most_w = std::max(most_w, power_w_[near]);
    }
    noise_j2[i] = square(model_.counter_noise_j) + square(steps_[i].u_time_s * power_w_[knot]) +
                  square(model_.transient_s * (most_w - least_w));
  }
  error_j_.resize(count);
  variance_j2_.resize(count);
  log_gain_.assign(count, 0);
  for (std::size_t first = 0, last = 0; first < count; first = last) {
    while (last < count && steps_[last].segment == steps_[first].segment) ++last;
    filter_segment(first, last, noise_j2, raw_j);
  }
}

// One run of the filter forwards and of the smoother backwards over the steps [first, last).
void EnergyIntegrator::filter_segment(std::size_t first, std::size_t last, const std::vector<double>& noise_j2,
                                      const std::vector<double>& raw_j) {
  std::vector<double> predicted_j2(last - first);
  double error_j = raw_j[first], variance_j2 = noise_j2[first];
  for (std::size_t i = first; i < last; ++i) {
    if (i > first) {
      const double ahead_j2 = variance_j2 + step_walked_j2_[i] - step_walked_j2_[i - 1];
      predicted_j2[i - first] = ahead_j2;
      const double gain = ahead_j2 / (ahead_j2 + noise_j2[i]);
      error_j += gain * (raw_j[i] - error_j);
      variance_j2 = (1 - gain) * ahead_j2;
    }
    error_j_[i] = error_j;
    variance_j2_[i] = variance_j2;
  }
  // The prediction of step i + 1 is the filtered value of step i: a walk has no drift.
  std::vector<double> gain(last - first, 1);
  for (std::size_t i = last - 1; i-- > first;) {
    gain[i - first] = variance_j2_[i] / predicted_j2[i + 1 - first];
    error_j_[i] += gain[i - first] * (error_j_[i + 1] - error_j_[i]);
    variance_j2_[i] += square(gain[i - first]) * (variance_j2_[i + 1] - predicted_j2[i + 1 - first]);
  }
  for (std::size_t i = first + 1; i < last; ++i) log_gain_[i] = log_gain_[i - 1] + std::log(gain[i - 1 - first]);
}

// Covariance of D at two steps of one segment, i <= j (Ansley and Kohn 1982): the gains between them times the
// variance.
double EnergyIntegrator::covariance(std::size_t i, std::size_t j) const {
  return std::exp(log_gain_[j] - log_gain_[i]) * variance_j2_[j];
}

EnergyIntegrator::Edge EnergyIntegrator::edge_at(double time_s) const {
  const auto after = std::ranges::upper_bound(knots_s_, time_s);
  const std::size_t knot = after == knots_s_.begin() ? 0 : static_cast<std::size_t>(after - knots_s_.begin()) - 1;
  const std::size_t first = knot > kLeftIntervals ? knot - kLeftIntervals : 0;
  double sum_w = 0;
  for (std::size_t i = first; i < knot; ++i) sum_w += power_w_[i];
  const double left_w = knot > first ? sum_w / static_cast<double>(knot - first) : sensed_w_[0];
  double spread_w2 = square(model_.sample_noise_w);
  const std::size_t from = knot > kSpreadIntervals ? knot - kSpreadIntervals : 0;
  for (std::size_t i = from + 1; i < knot; ++i) {
    spread_w2 += square(power_w_[i] - power_w_[i - 1]) / (2 * static_cast<double>(knot - from - 1));
  }
  const double past_s = time_s - knots_s_[knot];
  return {knot, left_w, until_j_[knot] + left_w * past_s, spread_w2 * square(past_s)};
}

EnergyIntegrator::Place EnergyIntegrator::place_at(std::size_t knot) const {
  const double walked_j2 = walked_j2_[knot];
  const double time_s = knots_s_[knot];
  const auto after = std::ranges::upper_bound(steps_, time_s, {}, &CounterStep::time_s);
  if (after == steps_.begin()) return {0, 0, step_walked_j2_[0] - walked_j2, walked_j2, false};
  const std::size_t left = static_cast<std::size_t>(after - steps_.begin()) - 1;
  const double since_j2 = walked_j2 - step_walked_j2_[left];
  if (after == steps_.end() || after->segment != steps_[left].segment) return {left, 0, since_j2, walked_j2, false};
  const double whole_j2 = step_walked_j2_[left + 1] - step_walked_j2_[left];
  const double weight = whole_j2 > 0 ? since_j2 / whole_j2 : 0;
  return {left, weight, since_j2 * (1 - weight), walked_j2, true};
}

double EnergyIntegrator::at(const Place& place) const {
  const double left_j = error_j_[place.step];
  return place.weight > 0 ? left_j + place.weight * (error_j_[place.step + 1] - left_j) : left_j;
}

double EnergyIntegrator::difference_variance(const Place& begin, const Place& end) const {
  const double walked_j2 = end.walked_j2 - begin.walked_j2;
  const bool same = begin.step == end.step && begin.inside == end.inside;
  if (same && !begin.inside) return walked_j2;  // both beyond the steps, on one side
  double bridge_j2 = begin.bridge_j2 + end.bridge_j2;
  if (same) {  // within one bridge: the walk between the two places, tied down by its ends
    const double whole_j2 = step_walked_j2_[begin.step + 1] - step_walked_j2_[begin.step];
    bridge_j2 = whole_j2 > 0 ? walked_j2 * (1 - walked_j2 / whole_j2) : 0;
  }
  // D(end) - D(begin) as a sum over at most four steps, each with its coefficient.
  const std::size_t steps[] = {begin.step, begin.step + 1, end.step, end.step + 1};
  const double coefficients[] = {begin.weight - 1, -begin.weight, 1 - end.weight, end.weight};
  double variance_j2 = bridge_j2;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      if (coefficients[i] == 0 || coefficients[j] == 0) continue;
      const auto [low, high] = std::minmax(steps[i], steps[j]);
      variance_j2 += coefficients[i] * coefficients[j] * covariance(low, high);
    }
  }
  return std::max(variance_j2, 0.0);
}

// Least squares line through p over the whole intervals between two knots, in constant time from the moments.
void EnergyIntegrator::fit_trend(std::size_t first, std::size_t last, WindowEnergy& into) const {
  if (last < first + kFewestForTrend) return;
  const Moments &low = moments_[first], &high = moments_[last];
  const double begin_s = knots_s_[first] - knots_s_[0], end_s = knots_s_[last] - knots_s_[0];
  const double length_s = end_s - begin_s, mean_s = (begin_s + end_s) / 2;
  const double mean_w = (high.power_w - low.power_w) / length_s;
  const double spread_s2 = (high.time2_s2 - low.time2_s2) / length_s - square(mean_s);
  const double together = (high.power_time_ws - low.power_time_ws) / length_s - mean_s * mean_w;
  const double slope = together / spread_s2;
  const double left_w2 = (high.power2_w2 - low.power2_w2) / length_s - square(mean_w) - slope * together;
  const double freedom = static_cast<double>(last - first) - 2;
  into.drift_w = slope * length_s;
  into.drift_variance_w2 = std::max(left_w2, 0.0) / (freedom * spread_s2) * square(length_s);
}

bool EnergyIntegrator::gap_between(std::size_t first, std::size_t last) const {
  const auto gap = std::ranges::lower_bound(gaps_, first);
  return gap != gaps_.end() && *gap <= last;
}

WindowEnergy EnergyIntegrator::energy(double begin_s, double end_s) const {
  WindowEnergy result{kNothing, kNothing, 0, 0, 0, 0, 0, 0};
  if (begin_s < knots_s_.front() - kReach_s || end_s > knots_s_.back() + kReach_s || begin_s > end_s) {
    result.doubts = kNotCovered;
    return result;
  }
  const Edge begin = edge_at(begin_s), end = edge_at(end_s);
  if (begin.knot == end.knot || begin.knot + 1 == knots_s_.size()) {
    result.samples_j = end.until_j - begin.until_j;
  } else {
    // Right of the edge, p is what the next sample asks for, given the lag's state at the edge.
    const double next_s = knots_s_[begin.knot + 1], rest_s = next_s - begin_s;
    const double past = std::exp(-(begin_s - knots_s_[begin.knot]) / model_.response_s);
    const double state_w = begin.left_w + (sensed_w_[begin.knot] - begin.left_w) * past;
    const double kept = std::exp(-rest_s / model_.response_s);
    // p * rest without the division by a vanishing 1 - kept: it tends to response * (y1 - state) + state * rest.
    const double rest_j =
        rest_s / -std::expm1(-rest_s / model_.response_s) * (sensed_w_[begin.knot + 1] - state_w * kept);
    result.samples_j = rest_j + end.until_j - until_j_[begin.knot + 1];
  }
  if (end.knot > begin.knot) fit_trend(begin.knot + 1, end.knot, result);
  result.interior_variance_j2 = walked_j2_[end.knot] - walked_j2_[begin.knot];
  result.fused_variance_j2 = result.interior_variance_j2;
  result.edge_variance_j2 = begin.variance_j2 + end.variance_j2;
  result.energy_j = result.samples_j;
  if (gap_between(begin.knot, end.knot)) result.doubts |= kGap;
  if (steps_.empty()) {
    result.doubts |= kNoCounter;
    return result;
  }
  const Place from = place_at(begin.knot), to = place_at(end.knot);
  if (steps_[from.step].segment != steps_[to.step].segment) {
    result.doubts |= kCounterReset;
    return result;
  }
  result.energy_j += at(to) - at(from);
  result.fused_variance_j2 = difference_variance(from, to);
  if (from.step == to.step && !from.inside && !to.inside) result.doubts |= kNoCounter;
  return result;
}

}  // namespace pybench
