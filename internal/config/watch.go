package config

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchOptions configures a Watcher. The zero value is sensible.
type WatchOptions struct {
	// Quiet is how long files must have stayed as they are before their change is
	// told: whoever writes them may not be done. 0: 500 ms.
	Quiet time.Duration
	// Poll is how often is looked although the system told of nothing: not all file
	// systems tell. 0: 2 s.
	Poll time.Duration
	// Logger is told if the system tells of no changes. nil: nobody is.
	Logger *slog.Logger
}

func (o WatchOptions) withDefaults() WatchOptions {
	if o.Quiet == 0 {
		o.Quiet = 500 * time.Millisecond
	}
	if o.Poll == 0 {
		o.Poll = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Watcher tells when the content of files has changed: written in place or
// replaced, themselves or what they link to, gone or back.
type Watcher struct {
	files   []string
	opts    WatchOptions
	events  *fsnotify.Watcher // nil: it looks now and then
	watched []string          // directories
	changed chan struct{}     // one slot
	closing chan struct{}
	ended   chan struct{}
}

// Watch watches files, given by absolute paths, until Close. The first signal
// comes soon: the files may have changed since they were read.
func Watch(files []string, opts WatchOptions) *Watcher {
	w := &Watcher{
		files: files, opts: opts.withDefaults(),
		changed: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		w.opts.Logger.Warn("changes of the configuration are noticed a little later", "err", err)
	} else {
		w.events = events
	}
	w.watchDirs()
	go w.run() // ends with Close
	return w
}

// Changed has a signal when the content is another than at the last one.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Close ends the watching.
func (w *Watcher) Close() {
	close(w.closing)
	<-w.ended
	if w.events != nil {
		_ = w.events.Close() // nothing is left to be told
	}
}

func (w *Watcher) run() {
	defer close(w.ended)
	poll := time.NewTicker(w.opts.Poll)
	defer poll.Stop()
	var events <-chan fsnotify.Event
	var failures <-chan error
	if w.events != nil {
		events, failures = w.events.Events, w.events.Errors
	}
	told, seen := "", "" // the content last told, the form last seen
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	for {
		select {
		case <-w.closing:
			return
		case e := <-events:
			if form := w.form(); form != seen || w.concerns(e.Name) {
				seen = form
				quiet.Reset(w.opts.Quiet)
			}
		case err := <-failures: // as when too much happens at once
			w.opts.Logger.Debug("changes of the configuration may have been missed", "err", err)
			quiet.Reset(w.opts.Quiet)
		case <-poll.C:
			if form := w.form(); form != seen {
				seen = form
				quiet.Reset(w.opts.Quiet)
			}
		case <-quiet.C:
			w.watchDirs()
			form := w.form()
			if form != seen {
				seen = form
				quiet.Reset(w.opts.Quiet)
				continue
			}
			if content := w.content(); content != told {
				told = content
				select {
				case w.changed <- struct{}{}:
				default:
				}
			}
		}
	}
}

// concerns reports whether a path is that of a file.
func (w *Watcher) concerns(path string) bool {
	return slices.ContainsFunc(w.files, func(f string) bool { return filepath.Base(f) == filepath.Base(path) })
}

// form is another after most changes, and cheap.
func (w *Watcher) form() string {
	out := ""
	for _, f := range w.files {
		info, err := os.Stat(f)
		if err != nil {
			out += err.Error() + "\n"
			continue
		}
		target, _ := filepath.EvalSymlinks(f) // what it links to may be the same later
		out += fmt.Sprintln(target, info.Size(), info.ModTime().UnixNano())
	}
	return out
}

// content stands for what is in the files.
func (w *Watcher) content() string {
	h := sha256.New()
	for _, f := range w.files {
		text, err := readFile(f)
		h.Write(fmt.Appendln(text, len(text), err))
	}
	return string(h.Sum(nil))
}

// watchDirs has the system tell of changes in the directories where the files
// are, and where they link to. Those of files themselves end when they are
// replaced.
func (w *Watcher) watchDirs() {
	if w.events == nil {
		return
	}
	var dirs []string
	for _, f := range w.files {
		dirs = append(dirs, filepath.Dir(f))
		if target, err := filepath.EvalSymlinks(f); err == nil {
			dirs = append(dirs, filepath.Dir(target))
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	for _, dir := range w.watched {
		if !slices.Contains(dirs, dir) {
			_ = w.events.Remove(dir) // it may be gone
		}
	}
	w.watched = nil
	for _, dir := range dirs {
		if err := w.events.Add(dir); err != nil {
			w.opts.Logger.Debug("changes in a directory are noticed a little later", "dir", dir, "err", err)
			continue
		}
		w.watched = append(w.watched, dir)
	}
}
