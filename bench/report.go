package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// A result is what was measured in one scenario: for each target a sample a
// round.
type result struct {
	scenario scenario
	samples  map[string][]sample
}

func (r *result) add(target string, s sample) {
	if r.samples == nil {
		r.samples = map[string][]sample{}
	}
	r.samples[target] = append(r.samples[target], s)
}

// median returns the medians of a target's samples, each number by itself.
func (r result) median(target string) sample {
	all := r.samples[target]
	pick := func(number func(sample) float64) float64 { return median(numbers(all, number)) }
	return sample{
		Calls:      int(pick(func(s sample) float64 { return float64(s.Calls) })),
		Throughput: pick(throughput),
		P50:        pick(p50),
		P99:        pick(p99),
		CPU:        pick(cpu),
		RSS:        pick(rss),
	}
}

func throughput(s sample) float64 { return s.Throughput }
func p50(s sample) float64        { return s.P50 }
func p99(s sample) float64        { return s.P99 }
func cpu(s sample) float64        { return s.CPU }
func rss(s sample) float64        { return s.RSS }

// A ratio compares the gateway with the reference: the gateway's number divided
// by the reference's in the same round, then the median, lowest and highest of
// the rounds.
type ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// ratio returns the ratio of a number, and whether both targets have it.
func (r result) ratio(number func(sample) float64) (ratio, bool) {
	ours := numbers(r.samples[rosterName], number)
	theirs := numbers(r.samples[references[r.scenario.kind]], number)
	var all []float64
	for i := range min(len(ours), len(theirs)) {
		if theirs[i] > 0 {
			all = append(all, ours[i]/theirs[i])
		}
	}
	if len(all) == 0 {
		return ratio{}, false
	}
	return ratio{Median: median(all), Low: slices.Min(all), High: slices.Max(all)}, true
}

func numbers(all []sample, number func(sample) float64) []float64 {
	out := make([]float64, len(all))
	for i, s := range all {
		out[i] = number(s)
	}
	return out
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	mid := len(all) / 2
	if len(all)%2 == 1 {
		return all[mid]
	}
	return (all[mid-1] + all[mid]) / 2
}

// writeTable writes the medians, and below the gateway's line its ratios.
func writeTable(to io.Writer, results []result) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "scenario\ttarget\tcalls/s\tp50 µs\tp99 µs\tCPU µs/call\tRSS MiB\t")
	for _, r := range results {
		for _, name := range []string{references[r.scenario.kind], rosterName} {
			if len(r.samples[name]) > 0 {
				m := r.median(name)
				fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t\n", r.scenario.name(), name, m.Throughput, m.P50, m.P99, m.CPU, m.RSS)
			}
		}
		tp, ok := r.ratio(throughput)
		if !ok {
			continue
		}
		fmt.Fprintf(w, "\tratio\t%.2f (%.2f-%.2f)", tp.Median, tp.Low, tp.High)
		for _, number := range []func(sample) float64{p50, p99, cpu, rss} {
			x, _ := r.ratio(number)
			fmt.Fprintf(w, "\t%.2f", x.Median)
		}
		fmt.Fprintln(w, "\t")
	}
	return w.Flush()
}

// A report is the JSON form of a run.
type report struct {
	Time      time.Time       `json:"time"`
	Go        string          `json:"go"`
	System    string          `json:"system"`
	CPUs      int             `json:"cpus"`
	LoadAvg   string          `json:"loadAverageBefore,omitempty"`
	Era       era             `json:"era"`
	Rounds    int             `json:"rounds"`
	Duration  float64         `json:"secondsPerMeasurement"`
	Scenarios []scenarioEntry `json:"scenarios"`
}

type scenarioEntry struct {
	Name    string              `json:"name"`
	Kind    string              `json:"kind"`
	Bytes   int                 `json:"bytes,omitempty"`
	Callers int                 `json:"callers"`
	Rate    float64             `json:"rate,omitempty"`
	Medians map[string]sample   `json:"medians"`
	Ratios  map[string]ratio    `json:"ratios,omitempty"`
	Samples map[string][]sample `json:"samples"`
}

func newReport(o options, results []result, load string) report {
	rep := report{
		Time: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs: runtime.NumCPU(), LoadAvg: load, Era: o.era, Rounds: o.rounds, Duration: o.duration.Seconds(),
	}
	for _, r := range results {
		e := scenarioEntry{
			Name: r.scenario.name(), Kind: r.scenario.kind, Bytes: r.scenario.bytes, Callers: r.scenario.callers, Rate: r.scenario.rate,
			Medians: map[string]sample{}, Ratios: map[string]ratio{}, Samples: r.samples,
		}
		for name := range r.samples {
			e.Medians[name] = r.median(name)
		}
		for name, number := range map[string]func(sample) float64{
			"throughput": throughput, "p50": p50, "p99": p99, "cpu": cpu, "rss": rss,
		} {
			if x, ok := r.ratio(number); ok {
				e.Ratios[name] = x
			}
		}
		rep.Scenarios = append(rep.Scenarios, e)
	}
	return rep
}

// write writes the report to a file, whose directory it makes.
func (r report) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// shortfalls returns a line for every closed loop whose throughput ratio is
// below the threshold of its kind, and an error if there is nothing to check.
func shortfalls(results []result, thresholds map[string]float64) ([]string, error) {
	var short []string
	checked := 0
	for _, r := range results {
		least, ok := thresholds[r.scenario.kind]
		if !ok {
			continue
		}
		got, ok := r.ratio(throughput)
		if !ok {
			continue
		}
		checked++
		if got.Median < least {
			short = append(short, fmt.Sprintf("%s: %.2f of the reference's throughput (%.2f to %.2f), less than %.2f",
				r.scenario.name(), got.Median, got.Low, got.High, least))
		}
	}
	if checked == 0 {
		return nil, fmt.Errorf("nothing to check: the gateway and a reference must both run")
	}
	return short, nil
}
