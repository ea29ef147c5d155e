// SPDX-License-Identifier: Apache-2.0
// Implements walk_smoother.hpp.
#include "walk_smoother.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace pybench {
namespace {

constexpr double kForgotten = -45;  // exp of less is nothing beside 1 in 53 bits

}  // namespace

WalkSmoother::WalkSmoother(std::vector<WalkObservation> seen) : seen_(std::move(seen)) {
  const std::size_t count = seen_.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!(seen_[i].noise_j2 > 0)) throw std::invalid_argument("an observation needs noise");
    if (i > 0 && !(seen_[i].walked_j2 >= seen_[i - 1].walked_j2)) throw std::invalid_argument("a walk cannot go back");
  }
  value_j_.resize(count);
  variance_j2_.resize(count);
  log_gain_.assign(count, 0);
  later_.resize(count);
  earlier_.resize(count);
  for (std::size_t first = 0, last = 0; first < count; first = last) {
    while (last < count && seen_[last].segment == seen_[first].segment) ++last;
    smooth_segment(first, last);
  }
}

// One run of the filter forwards and of the smoother backwards over the observations [first, last).
void WalkSmoother::smooth_segment(std::size_t first, std::size_t last) {
  std::vector<double> predicted_j2(last - first), gain(last - first, 1);
  double value_j = seen_[first].seen_j, variance_j2 = seen_[first].noise_j2;
  for (std::size_t i = first; i < last; ++i) {
    if (i > first) {
      const double ahead_j2 = variance_j2 + seen_[i].walked_j2 - seen_[i - 1].walked_j2;
      predicted_j2[i - first] = ahead_j2;
      const double learnt = ahead_j2 / (ahead_j2 + seen_[i].noise_j2);
      value_j += learnt * (seen_[i].seen_j - value_j);
      variance_j2 = (1 - learnt) * ahead_j2;
    }
    value_j_[i] = value_j;
    variance_j2_[i] = variance_j2;
  }
  // The prediction of observation i + 1 is the filtered value of observation i: a walk has no drift.
  for (std::size_t i = last - 1; i-- > first;) {
    const double back = variance_j2_[i] / predicted_j2[i + 1 - first];
    gain[i - first] = back;
    value_j_[i] += back * (value_j_[i + 1] - value_j_[i]);
    variance_j2_[i] += back * back * (variance_j2_[i + 1] - predicted_j2[i + 1 - first]);
  }
  for (std::size_t i = last; i-- > first;) {
    later_[i] = variance_j2_[i] / seen_[i].noise_j2 + (i + 1 < last ? gain[i - first] * later_[i + 1] : 0);
  }
  for (std::size_t i = first; i < last; ++i) {
    earlier_[i] = 1 / seen_[i].noise_j2 + (i > first ? gain[i - 1 - first] * earlier_[i - 1] : 0);
    if (i > first) log_gain_[i] = log_gain_[i - 1] + std::log(gain[i - 1 - first]);
  }
}

WalkSmoother::Place WalkSmoother::place(std::size_t next, double walked_j2) const {
  if (next == 0) return {0, 0, seen_[0].walked_j2 - walked_j2, walked_j2, false};
  const std::size_t left = next - 1;
  const double since_j2 = walked_j2 - seen_[left].walked_j2;
  if (next == seen_.size() || seen_[next].segment != seen_[left].segment) return {left, 0, since_j2, walked_j2, false};
  const double whole_j2 = seen_[next].walked_j2 - seen_[left].walked_j2;
  const double weight = whole_j2 > 0 ? since_j2 / whole_j2 : 0;
  return {left, weight, since_j2 * (1 - weight), walked_j2, true};
}

template <typename AtObservation>
double WalkSmoother::between(const Place& place, AtObservation at) const {
  const double left_j = at(place.left);
  return place.weight > 0 ? left_j + place.weight * (at(place.left + 1) - left_j) : left_j;
}

double WalkSmoother::value_j(const Place& place) const {
  return between(place, [&](std::size_t i) { return value_j_[i]; });
}

double WalkSmoother::answer_to_one(const Place& place, std::size_t index) const {
  return between(place, [&](std::size_t i) { return weight_of(i, index); });
}

double WalkSmoother::answer_to_step(const Place& place, std::size_t first) const {
  return between(place, [&](std::size_t i) { return step_weight(i, first); });
}

// Of two smoothed values of one segment, i <= j.
double WalkSmoother::covariance_j2(std::size_t i, std::size_t j) const { return gain_between(i, j) * variance_j2_[j]; }

double WalkSmoother::gain_between(std::size_t i, std::size_t j) const {
  const double log_gain = log_gain_[j] - log_gain_[i];
  return log_gain < kForgotten ? 0 : std::exp(log_gain);
}

// Of observation j in the smoothed value at observation i.
double WalkSmoother::weight_of(std::size_t i, std::size_t j) const {
  if (seen_[i].segment != seen_[j].segment) return 0;
  return covariance_j2(std::min(i, j), std::max(i, j)) / seen_[j].noise_j2;
}

// Of all observations from `first` on in the smoothed value at observation i. Those of a segment add to 1.
double WalkSmoother::step_weight(std::size_t i, std::size_t first) const {
  if (first >= seen_.size() || seen_[first].segment != seen_[i].segment) return first > i ? 0 : 1;
  if (i <= first) return gain_between(i, first) * later_[first];
  if (first == 0 || seen_[first - 1].segment != seen_[i].segment) return 1;
  return 1 - variance_j2_[i] * gain_between(first - 1, i) * earlier_[first - 1];
}

double WalkSmoother::difference_variance_j2(const Place& begin, const Place& end) const {
  const double walked_j2 = end.walked_j2 - begin.walked_j2;
  const bool same = begin.left == end.left && begin.inside == end.inside;
  if (same && !begin.inside) return walked_j2;  // one observation between them, or both on one side of it
  double bridge_j2 = begin.bridge_j2 + end.bridge_j2;
  if (same) {  // within one bridge: the walk between the two places, tied down by its ends
    const double whole_j2 = seen_[begin.left + 1].walked_j2 - seen_[begin.left].walked_j2;
    bridge_j2 = whole_j2 > 0 ? walked_j2 * (1 - walked_j2 / whole_j2) : 0;
  }
  // D(end) - D(begin) as a sum over at most four observations, each with its coefficient.
  const std::size_t observations[] = {begin.left, begin.left + 1, end.left, end.left + 1};
  const double coefficients[] = {begin.weight - 1, -begin.weight, 1 - end.weight, end.weight};
  double variance_j2 = bridge_j2;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      if (coefficients[i] == 0 || coefficients[j] == 0) continue;
      const auto [low, high] = std::minmax(observations[i], observations[j]);
      variance_j2 += coefficients[i] * coefficients[j] * covariance_j2(low, high);
    }
  }
  return std::max(variance_j2, 0.0);
}

}  // namespace pybench
