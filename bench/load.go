package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Kinds of scenario.
const (
	kindCall = "call" // tools/call, closed loop
	kindList = "list" // tools/list, closed loop
	kindOpen = "open" // tools/call at a fixed rate
)

// A scenario is one kind of load.
type scenario struct {
	kind    string
	bytes   int     // length of the text asked for; 0 for lists
	callers int     // connections, each with at most one request under way
	rate    float64 // requests a second, of kindOpen
}

func (s scenario) name() string {
	switch s.kind {
	case kindList:
		return fmt.Sprintf("list c%d", s.callers)
	case kindOpen:
		return fmt.Sprintf("open %s", sizeName(s.bytes))
	}
	return fmt.Sprintf("call %s c%d", sizeName(s.bytes), s.callers)
}

func sizeName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}

// A sample is one measurement of one target.
type sample struct {
	Calls      int     `json:"calls"`
	Throughput float64 `json:"callsPerSecond"`
	P50        float64 `json:"p50Micros"`
	P99        float64 `json:"p99Micros"`
	CPU        float64 `json:"cpuMicrosPerCall"` // of the target's own process; 0 if unknown
	RSS        float64 `json:"rssMiB"`           // after the measurement; 0 if unknown
}

// A load is what measurements have in common.
type load struct {
	era      era
	tools    int           // in a whole list
	duration time.Duration // of the measured part
}

// callLimit is how long any one answer may take beyond the measured time.
const callLimit = 30 * time.Second

// measure puts the load of a scenario on a target.
func (l load) measure(ctx context.Context, t *target, sc scenario) (sample, error) {
	callers, err := l.connect(ctx, t, sc)
	defer func() {
		for _, c := range callers {
			c.close()
		}
	}()
	if err != nil {
		return sample{}, err
	}
	// The collector is off while we measure; it must not be us who pause.
	runtime.GC()
	w := &window{latencies: make([][]time.Duration, sc.callers)}
	ended := make(chan error, 1)
	go func() { // ends when w says so, at the latest by the callers' deadline
		if sc.kind == kindOpen {
			ended <- l.open(w, callers, sc.rate)
			return
		}
		ended <- l.closed(w, callers)
	}()
	time.Sleep(max(l.duration/5, 50*time.Millisecond))
	cpu := t.cpuTime()
	began := time.Now()
	w.phase.Store(recording)
	select {
	case <-time.After(l.duration):
	case <-ctx.Done():
	}
	w.phase.Store(over)
	took := time.Since(began)
	cpu = t.cpuTime() - cpu
	if err := <-ended; err != nil {
		return sample{}, fmt.Errorf("%s, %s: %w", t.name, sc.name(), err)
	}
	if err := ctx.Err(); err != nil {
		return sample{}, err
	}
	return summarize(slices.Concat(w.latencies...), took, cpu, t.rss()), nil
}

// connect returns callers that are ready to repeat the request of sc.
func (l load) connect(ctx context.Context, t *target, sc scenario) ([]*caller, error) {
	var callers []*caller
	bodyLen := 0 // the first caller finds out
	for i := range sc.callers {
		c, err := dial(ctx, t, l.era, int64(i)*10_000_000, l.duration*2+callLimit)
		if err != nil {
			return callers, err
		}
		callers = append(callers, c)
		if err := c.prepare(sc, t.tool, l.tools, bodyLen); err != nil {
			return callers, fmt.Errorf("%s, %s: %w", t.name, sc.name(), err)
		}
		bodyLen = c.bodyLen
	}
	return callers, nil
}

// A window says when to record, and holds what was recorded: for each caller
// the latencies of the calls that ended while phase was recording.
type window struct {
	phase     atomic.Int32
	latencies [][]time.Duration
}

// Phases of a window.
const (
	warming int32 = iota
	recording
	over
)

// closed lets every caller call again as soon as it has its answer.
func (l load) closed(w *window, callers []*caller) error {
	var running sync.WaitGroup
	errs := make(chan error, len(callers))
	for i, c := range callers {
		running.Go(func() {
			lat := make([]time.Duration, 0, 1<<15)
			for {
				before := time.Now()
				if err := c.call(); err != nil {
					errs <- err
					break
				}
				phase := w.phase.Load()
				if phase == over {
					break
				}
				if phase == recording {
					lat = append(lat, time.Since(before))
				}
			}
			w.latencies[i] = lat
		})
	}
	running.Wait()
	close(errs)
	return <-errs
}

// open sends requests at the times of a fixed schedule, each on a connection
// that is free. A latency counts from the time the request was due, so a
// request that waits for a free connection is late, not absent.
func (l load) open(w *window, callers []*caller, rate float64) error {
	free := make(chan int, len(callers))
	due := make([]chan time.Time, len(callers))
	errs := make(chan error, 2*len(callers))
	var running sync.WaitGroup
	for i, c := range callers {
		free <- i
		due[i] = make(chan time.Time, 1)
		running.Go(func() { // ends when due is closed
			for at := range due[i] {
				if err := c.receive(); err != nil {
					errs <- err
					return // it is never free again
				}
				if w.phase.Load() == recording {
					w.latencies[i] = append(w.latencies[i], time.Since(at))
				}
				free <- i
			}
		})
	}
	l.pace(w, rate, func(at time.Time) bool {
		select {
		case i := <-free:
			if err := callers[i].send(); err != nil {
				errs <- err
				return false
			}
			due[i] <- at
			return true
		case err := <-errs:
			errs <- err
			return false
		}
	})
	for i := range due {
		close(due[i])
	}
	running.Wait()
	close(errs)
	return <-errs
}

// pace calls send at the given rate until the window is over or send fails.
func (l load) pace(w *window, rate float64, send func(due time.Time) bool) {
	wait, release := preciseSleep()
	defer release()
	began := time.Now()
	for n := 0; w.phase.Load() != over; n++ {
		at := began.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		if d := time.Until(at); d > 0 {
			wait(d)
		}
		if !send(at) {
			return
		}
	}
}

// summarize returns the sample of calls with the given latencies.
func summarize(latencies []time.Duration, took, cpu time.Duration, rss int64) sample {
	n := len(latencies)
	if n == 0 {
		return sample{}
	}
	slices.Sort(latencies)
	return sample{
		Calls:      n,
		Throughput: float64(n) / took.Seconds(),
		P50:        micros(quantile(latencies, 0.50)),
		P99:        micros(quantile(latencies, 0.99)),
		CPU:        micros(cpu) / float64(n),
		RSS:        float64(rss) / (1 << 20),
	}
}

// quantile returns the smallest of the sorted values that is not exceeded by
// a share q of them.
func quantile(sorted []time.Duration, q float64) time.Duration {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
