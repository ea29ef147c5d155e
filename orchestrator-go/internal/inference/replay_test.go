// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newClock(t *testing.T) *Clock {
	t.Helper()
	clock, err := NewClock()
	if err != nil {
		t.Fatal(err)
	}
	return clock
}

func TestTheClockIsTheKernelsRawOne(t *testing.T) {
	clock := newClock(t)
	for range 100 {
		var before, after unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &before); err != nil {
			t.Fatal(err)
		}
		now := clock.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &after); err != nil {
			t.Fatal(err)
		}
		if now < before.Nano() || now > after.Nano() {
			t.Fatalf("%d is not between %d and %d", now, before.Nano(), after.Nano())
		}
	}
}

func TestAReadingOfTheClockAllocatesNothing(t *testing.T) {
	clock := newClock(t)
	if allocated := testing.AllocsPerRun(1000, func() { clock.Now() }); allocated > 0 {
		t.Errorf("%v allocations a reading", allocated)
	}
}

func TestAReplayEndsByCountByTimeOrByArrivals(t *testing.T) {
	const pause = 2 * time.Millisecond
	for name, one := range map[string]struct {
		pace        Pace
		least, most int
	}{
		"count":    {Pace{Iterations: 7}, 7, 7},
		"none":     {Pace{}, 0, 0},
		"time":     {Pace{Iterations: 1, MinimumNs: 20e6}, 2, 10},
		"arrivals": {Pace{Iterations: 1, arrivals: []int64{0, 1e6, 30e6}}, 3, 3},
	} {
		clock, calls := newClock(t), 0
		times, err := Replay(clock, one.pace, func() error { calls++; time.Sleep(pause); return nil })
		if err != nil || len(times) != timesOf*calls || calls < one.least || calls > one.most {
			t.Errorf("%s: %d calls, %d times, %v", name, calls, len(times), err)
		}
		for at := 0; at < len(times); at += timesOf {
			due, begin, end := times[at], times[at+1], times[at+2]
			if begin < due || end-begin < int64(pause) || (at > 0 && begin < times[at-1]) {
				t.Errorf("%s: due %d, begin %d, end %d", name, due, begin, end)
			}
			if len(one.pace.arrivals) > 0 && due-times[0] != one.pace.arrivals[at/timesOf] {
				t.Errorf("%s: due %d after the first", name, due-times[0])
			}
		}
	}
}

func TestAnErrorEndsAReplay(t *testing.T) {
	broken, calls := errors.New("broken"), 0
	_, err := Replay(newClock(t), Pace{Iterations: 9}, func() error {
		if calls++; calls == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
