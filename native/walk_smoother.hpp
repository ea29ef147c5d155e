// SPDX-License-Identifier: Apache-2.0
// A random walk seen through noise, smoothed: its value and covariance anywhere, and what one observation more or less
// would change.
//
// D walks: the variance of D(b) - D(a) is walked(b) - walked(a), and nothing is known of where it starts. Observation i
// is D at walked[i] plus noise of a variance of its own. Filter and smoother are Kalman's and Rauch, Tung and
// Striebel's (1965); the covariance of two smoothed values is the product of the gains between them times the later
// variance (Ansley and Kohn 1982). As the smoother is linear with weights covariance(i, j) / noise[j], its answer to a
// step in the observations is a sum over those weights, kept as two running sums. Observations of different segments
// share nothing. It knows neither time nor power.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pybench {

struct WalkObservation {
  double walked_j2;      // variance of the walk since some origin, not decreasing
  double noise_j2;       // > 0
  double seen_j;         // D plus noise
  std::int64_t segment;  // D starts anew with every segment
};

class WalkSmoother {
 public:
  // A place on the walk, between (or beyond) two observations.
  struct Place {
    std::size_t left;  // the observation left of it (or the first)
    double weight;     // of the observation right of it
    double bridge_j2;  // variance given both
    double walked_j2;
    bool inside;  // between two observations of one segment
  };

  WalkSmoother() = default;
  // Throws std::invalid_argument for noise that is not positive or a walk that goes back.
  explicit WalkSmoother(std::vector<WalkObservation> seen);

  bool empty() const { return seen_.empty(); }
  std::int64_t segment(const Place& place) const { return seen_[place.left].segment; }

  // `next`: the first observation that is later than the place (or their number). Not for an empty smoother.
  Place place(std::size_t next, double walked_j2) const;
  double value_j(const Place& place) const;
  // Variance of D(end) - D(begin), both of one segment.
  double difference_variance_j2(const Place& begin, const Place& end) const;
  // What value_j changes by if observation `index`, or each one from `first` on, were higher by 1 J.
  double answer_to_one(const Place& place, std::size_t index) const;
  double answer_to_step(const Place& place, std::size_t first) const;

 private:
  void smooth_segment(std::size_t first, std::size_t last);
  double gain_between(std::size_t i, std::size_t j) const;
  double covariance_j2(std::size_t i, std::size_t j) const;
  double weight_of(std::size_t i, std::size_t j) const;
  double step_weight(std::size_t i, std::size_t first) const;
  template <typename AtObservation>
  double between(const Place& place, AtObservation at) const;

  std::vector<WalkObservation> seen_;
  std::vector<double> value_j_;      // D smoothed at each observation
  std::vector<double> variance_j2_;  // and its variance
  std::vector<double> log_gain_;     // running sums of the logarithm of the smoother's gain
  // Sums of gains over noise: of all later observations with their variance, and of all earlier ones without.
  std::vector<double> later_, earlier_;
};

}  // namespace pybench
