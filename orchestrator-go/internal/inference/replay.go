// SPDX-License-Identifier: Apache-2.0

package inference

// Pace is when iterations begin and how many there are: as pybench.measure has it of every runtime.
type Pace struct {
	Iterations int   `json:"iterations"`
	MinimumNs  int64 `json:"minimum_ns"`

	arrivals []int64 // ns after the start, ascending; none: a closed loop
}

// timesOf is due, begin and end of one iteration in ns of the clock; due is begin in a closed loop.
const timesOf = 3

func (p Pace) wantsMore(done int, elapsed int64) bool {
	if len(p.arrivals) > 0 {
		return done < len(p.arrivals)
	}
	return done < p.Iterations || elapsed < p.MinimumNs
}

// Replay calls iterate at a pace and times each call. Between two calls lie two readings of the clock, and in a loop of
// unknown length the growing of the table.
func Replay(clock *Clock, pace Pace, iterate func() error) ([]int64, error) {
	times := make([]int64, 0, timesOf*max(pace.Iterations, len(pace.arrivals), 1))
	start := clock.Now()
	for now := start; pace.wantsMore(len(times)/timesOf, now-start); {
		var due int64
		if len(pace.arrivals) > 0 {
			due = start + pace.arrivals[len(times)/timesOf]
			clock.SleepUntil(due)
		}
		begin := clock.Now()
		if len(pace.arrivals) == 0 {
			due = begin
		}
		if err := iterate(); err != nil {
			return nil, err
		}
		now = clock.Now()
		times = append(times, due, begin, now)
	}
	return times, nil
}
