package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"
)

// options is what the flags say.
type options struct {
	only     []string // targets
	era      era
	rounds   int
	duration time.Duration // of one measurement
	sizes    []int
	callers  []int
	openLoad float64        // rate of the open loop, as a share of the relay's capacity; 0 leaves it out
	openRate float64        // the same in requests a second, if not 0
	run      *regexp.Regexp // names of scenarios; all if nil
	profile  string         // file for a profile of the gateway; "": none
	progress io.Writer
}

// references says which target the gateway is compared with.
var references = map[string]string{kindCall: relayName, kindOpen: relayName, kindList: listName}

// openCallers is how many requests of an open loop can be under way.
const openCallers = 64

// scenarios returns the closed loops.
func (o options) scenarios() []scenario {
	var all []scenario
	for _, size := range o.sizes {
		for _, n := range o.callers {
			all = append(all, scenario{kind: kindCall, bytes: size, callers: n})
		}
	}
	for _, n := range []int{1, 16} {
		all = append(all, scenario{kind: kindList, callers: n})
	}
	return slices.DeleteFunc(all, func(s scenario) bool { return !o.wants(s) })
}

func (o options) wants(s scenario) bool { return o.run == nil || o.run.MatchString(s.name()) }

// measureAll runs all scenarios against all targets that take part in them.
// The targets take turns, so that whatever else the machine does meets them
// alike; each round also begins with another of them.
func (o options) measureAll(ctx context.Context, targets []*target) ([]result, error) {
	results, err := o.rounding(ctx, targets, o.scenarios(), o.duration)
	if err != nil {
		return nil, err
	}
	open := scenario{kind: kindOpen, bytes: o.sizes[0], callers: openCallers, rate: o.openRate}
	if open.rate == 0 {
		open.rate = o.openLoad * capacity(results)
	}
	if open.rate <= 0 || !o.wants(open) {
		return results, nil
	}
	more, err := o.rounding(ctx, targets, []scenario{open}, 2*o.duration)
	return append(results, more...), err
}

// rounding measures scenarios in rounds.
func (o options) rounding(ctx context.Context, targets []*target, scenarios []scenario, d time.Duration) ([]result, error) {
	l := load{era: o.era, tools: catalogServers * catalogTools, duration: d}
	results := make([]result, len(scenarios))
	for round := range o.rounds {
		fmt.Fprintf(o.progress, "round %d of %d\n", round+1, o.rounds)
		for i, sc := range scenarios {
			results[i].scenario = sc
			for k := range targets {
				t := targets[(k+round)%len(targets)]
				if t.name != rosterName && t.name != references[sc.kind] {
					continue
				}
				s, err := l.measure(ctx, t, sc)
				if err != nil {
					return nil, err
				}
				results[i].add(t.name, s)
			}
		}
	}
	return results, nil
}

// capacity returns the relay's best throughput with the smallest answers.
func capacity(results []result) float64 {
	best := 0.0
	for _, r := range results {
		if r.scenario.kind == kindCall && r.scenario.bytes == results[0].scenario.bytes {
			best = max(best, r.median(relayName).Throughput)
		}
	}
	return best
}
