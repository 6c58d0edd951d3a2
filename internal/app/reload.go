package app

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/upstream"
)

// running is a configuration that runs.
type running struct {
	config   *config.Config
	problems []config.Problem
	shown    admin.Running
}

func (a *App) newRunning(c *config.Config, problems []config.Problem) *running {
	r := &running{config: c, problems: problems}
	r.shown.Configuration = admin.Configuration{Files: a.opts.Files, Watched: a.opts.Watch, Read: time.Now()}
	for _, p := range problems {
		r.shown.Problems = append(r.shown.Problems, p.String())
	}
	for _, s := range c.Servers {
		it := admin.Configured{Name: s.Name, Transport: string(s.Transport), Disabled: s.Disabled}
		if s.Problem != nil {
			it.Problem = s.Problem.String()
		}
		r.shown.Servers = append(r.shown.Servers, it)
	}
	return r
}

var (
	errNoReload = errors.New("this gateway cannot read its configuration again")
	errClosing  = errors.New("the gateway is stopping")
)

// reloading lets one reload run at a time.
type reloading struct {
	slot    chan struct{} // full: one runs
	waiting atomic.Int32  // those that wait for it
	hurry   chan struct{} // one slot: another one waits
	closing chan struct{}
}

func newReloading() *reloading {
	return &reloading{slot: make(chan struct{}, 1), hurry: make(chan struct{}, 1), closing: make(chan struct{})}
}

func (r *reloading) enter(ctx context.Context) error {
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	select {
	case r.hurry <- struct{}{}:
	default:
	}
	select {
	case r.slot <- struct{}{}:
	case <-r.closing:
		return errClosing
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-r.closing:
		<-r.slot
		return errClosing
	default:
		return nil
	}
}

func (r *reloading) leave() { <-r.slot }

// close waits for the reload that runs; none runs after it.
func (r *reloading) close() {
	close(r.closing)
	r.slot <- struct{}{}
}

// await waits for a signal, at most for a time, and not while another reload
// waits.
func (r *reloading) await(signal <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for r.waiting.Load() == 0 {
		select {
		case <-signal:
			return
		case <-timer.C:
			return
		case <-r.closing:
			return
		case <-r.hurry: // somebody waits, or did
		}
	}
}

// Reload reads the configuration again, and has what is different take effect:
// servers that have changed are started anew, new ones are started, and
// when they have given their lists, or could have, clients see all of it at once and
// servers that are gone are stopped. Others do not notice. Of files with errors
// nothing is taken over, and the error is a *admin.RefusedError; but an entry that is
// wrong from the beginning is left out, as at the start. One reload runs at a time.
func (a *App) Reload(ctx context.Context) (config.Changes, error) {
	if a.opts.Load == nil {
		return config.Changes{}, errNoReload
	}
	if err := a.reloading.enter(ctx); err != nil {
		return config.Changes{}, err
	}
	defer a.reloading.leave()
	old := a.running.Load()
	next, err := a.read(old)
	if err != nil {
		a.refuse(old, err)
		return config.Changes{}, err
	}
	changes := compare(old, next)
	if changes.Servers() {
		if err := a.take(ctx, next.config, changes); err != nil {
			return config.Changes{}, err
		}
	}
	a.running.Store(next)
	a.logReload(old, next, changes)
	return changes, nil
}

// Plan says what Reload would do now. The error is as that of Reload.
func (a *App) Plan() (config.Changes, error) {
	if a.opts.Load == nil {
		return config.Changes{}, errNoReload
	}
	old := a.running.Load()
	next, err := a.read(old)
	if err != nil {
		return config.Changes{}, err
	}
	return compare(old, next), nil
}

// compare says what a reload changes, and which settings are others than at the
// start.
func compare(old, next *running) config.Changes {
	c := config.Compare(old.config, next.config)
	c.Settings = next.shown.NeedRestart
	return c
}

// read reads the configuration that is to take the place of old. The error is a
// *admin.RefusedError.
func (a *App) read(old *running) (*running, error) {
	c, problems, err := a.opts.Load()
	if err != nil {
		return nil, &admin.RefusedError{Problems: admin.ProblemsOf(err)}
	}
	var refused admin.RefusedError
	for _, p := range problems {
		if p.Severity == config.SeverityError && !a.tolerable(old, p) {
			refused.Problems = append(refused.Problems, admin.ProblemOf(p))
		}
	}
	if refused.Problems != nil {
		return nil, &refused
	}
	next := a.newRunning(c, problems)
	next.shown.NeedRestart = config.Compare(a.opts.Config, c).Settings
	return next, nil
}

// tolerable reports whether an error is that of a server that does not run
// anyway, or was there before.
func (a *App) tolerable(old *running, p config.Problem) bool {
	if p.Server != "" {
		return a.servers.Get(p.Server) == nil
	}
	return slices.ContainsFunc(old.problems, func(was config.Problem) bool {
		return was.File == p.File && was.Field == p.Field && was.Message == p.Message
	})
}

// refuse shows what is wrong with a configuration, beside the one that runs on.
func (a *App) refuse(old *running, err error) {
	refused, ok := errors.AsType[*admin.RefusedError](err)
	if !ok {
		return
	}
	now := *old
	now.shown.Refused = &admin.Refused{At: time.Now(), Problems: refused.Problems}
	a.running.Store(&now)
	if was := old.shown.Refused; was == nil || !slices.Equal(was.Problems, refused.Problems) {
		a.log.Error("the configuration is not taken over; what ran before runs on", "err", err)
	}
}

// take has the servers of a configuration run, and those that are no longer in
// it stop.
func (a *App) take(ctx context.Context, next *config.Config, changes config.Changes) error {
	if err := a.opened(ctx); err != nil {
		return err
	}
	var fresh, stay []*upstream.Server
	var expected []string
	for _, s := range next.Servers {
		srv := a.servers.Get(s.Name)
		switch {
		case s.Disabled:
			continue
		case srv == nil, slices.Contains(changes.Restarted, s.Name):
			srv = a.upstream(s, next.Roster)
			fresh = append(fresh, srv)
			if !srv.PerClient() {
				expected = append(expected, s.Name)
			}
		}
		stay = append(stay, srv)
	}
	heard := a.catalog.Expect(expected)
	leaving := slices.DeleteFunc(a.servers.All(), func(srv *upstream.Server) bool {
		return !slices.Contains(changes.Removed, srv.Name())
	})
	if err := a.use(slices.Concat(stay, leaving)); err != nil {
		return err
	}
	a.gateway.Renew(fresh)
	a.reloading.await(heard, next.Roster.StartupWait)
	a.catalog.Reconfigure(blocks(next))
	err := a.use(stay)
	a.journal.Keep(configured(next))
	a.logins.keep(names(stay))
	return err
}

func configured(c *config.Config) []string {
	var names []string
	for _, s := range c.Servers {
		names = append(names, s.Name)
	}
	return names
}

func names(servers []*upstream.Server) []string {
	out := make([]string, len(servers))
	for i, srv := range servers {
		out[i] = srv.Name()
	}
	return out
}

// opened waits until the first lists are there.
func (a *App) opened(ctx context.Context) error {
	select {
	case <-a.catalog.Ready():
		return nil
	case <-a.reloading.closing:
		return errClosing
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *App) logReload(old, next *running, c config.Changes) {
	settings := !slices.Equal(old.shown.NeedRestart, c.Settings)
	if !c.Servers() && !settings && old.shown.Refused == nil {
		return
	}
	a.log.Info("configuration taken over", "added", c.Added, "removed", c.Removed, "restarted", c.Restarted,
		"adjusted", c.Adjusted, "reordered", c.Reordered)
	if settings && len(c.Settings) > 0 {
		a.log.Warn("settings have changed that count from the next start", "settings", c.Settings)
	}
	for _, p := range next.problems {
		if !slices.Contains(old.problems, p) {
			a.log.Warn("the configuration has a problem", "problem", p.String())
		}
	}
}

// watch has the configuration read again when the content of its files has
// changed, until Close.
func (a *App) watch(ctx context.Context) {
	w := config.Watch(a.opts.Files, config.WatchOptions{Quiet: a.opts.Quiet, Logger: a.log})
	defer w.Close()
	for {
		select {
		case <-w.Changed():
			_, _ = a.Reload(ctx) // it logs what is wrong
		case <-a.reloading.closing:
			return
		}
	}
}
