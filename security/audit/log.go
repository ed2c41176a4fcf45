package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/DeRuina/timberjack"
	"github.com/prometheus/client_golang/prometheus"
)

// Options configure a Log.
type Options struct {
	// File is the name of the file, or - for standard output.
	File string
	// Strict makes Write return only when the line is on disk.
	Strict bool
	// MaxMegabytes is the size at which the file is rotated (100), and Backups the number of
	// older files that are kept (10).
	MaxMegabytes, Backups int
	Policy                *Policy
	Log                   *slog.Logger
	Registry              prometheus.Registerer // nil drops the metrics
}

const (
	// queued bounds the lines that wait for the disk.
	queued = 4096
	// patience is how long a request waits for its line to be taken.
	patience = 5 * time.Second
	// retryDisk is how often a failed log is tried again while nobody writes.
	retryDisk = time.Second
)

// sink is where lines go.
type sink interface {
	io.Writer
	// Sync returns when all lines are on disk.
	Sync() error
	Close() error
}

// Log writes events down. Requests that come at the same time share one sync of the disk. It
// is safe for concurrent use.
type Log struct {
	opts   Options
	to     sink
	lines  chan line
	broken atomic.Pointer[string] // why the last line could not be written; nil if it was
	lost   prometheus.Counter
}

type line struct {
	text []byte
	done chan error // nil if nobody waits
}

// New opens the log. Run writes its lines.
func New(opts Options) (*Log, error) {
	to, err := open(opts)
	if err != nil {
		return nil, fmt.Errorf("--audit-log %s: %w", opts.File, err)
	}
	return newLog(opts, to), nil
}

func newLog(opts Options, to sink) *Log {
	l := &Log{opts: opts, to: to, lines: make(chan line, queued), lost: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pilot_audit_lost_total",
		Help: "Events that could not be written to the audit log. A strict log loses none: it refuses the requests.",
	})}
	if opts.Registry != nil {
		opts.Registry.MustRegister(l.lost)
	}
	return l
}

// standardOutput is a sink that has no disk of its own.
type standardOutput struct{ io.Writer }

func (standardOutput) Sync() error  { return nil }
func (standardOutput) Close() error { return nil }

func open(opts Options) (sink, error) {
	if opts.File == "-" {
		return standardOutput{os.Stdout}, nil
	}
	// The first line must not be the first to find that there is no such folder.
	file, err := os.OpenFile(opts.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	megabytes, backups := opts.MaxMegabytes, opts.Backups
	if megabytes == 0 {
		megabytes = 100
	}
	if backups == 0 {
		backups = 10
	}
	info, err := os.Stat(opts.File)
	if err != nil {
		return nil, err
	}
	return &rotated{
		Logger: timberjack.Logger{Filename: opts.File, MaxSize: megabytes, MaxBackups: backups, FileMode: 0o600},
		size:   info.Size(), most: int64(megabytes) << 20,
	}, nil
}

// rotated is a file that begins anew at a size. It is synced before, because the library
// closes the full one without that.
type rotated struct {
	timberjack.Logger
	size, most int64
}

// Write implements io.Writer.
func (r *rotated) Write(text []byte) (int, error) {
	if r.size += int64(len(text)); r.size > r.most {
		if err := r.Sync(); err != nil {
			return 0, err
		}
		r.size = int64(len(text))
	}
	return r.Logger.Write(text)
}

// Run writes lines until ctx ends, and then those that wait.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(retryDisk)
	defer tick.Stop()
	for {
		select {
		case first := <-l.lines:
			l.write(first)
		case <-tick.C:
			if l.broken.Load() != nil {
				l.probe()
			}
		case <-ctx.Done():
			for len(l.lines) > 0 {
				l.write(<-l.lines)
			}
			return errors.Join(ctx.Err(), l.to.Close())
		}
	}
}

// write writes a line and all that wait behind it, with one sync.
func (l *Log) write(first line) {
	batch := []line{first}
	for len(l.lines) > 0 && len(batch) < queued {
		batch = append(batch, <-l.lines)
	}
	var err error
	if l.broken.Load() != nil {
		// The last line may have been cut off.
		_, err = l.to.Write([]byte("\n"))
	}
	for _, one := range batch {
		if err == nil {
			_, err = l.to.Write(one.text)
		}
	}
	if err == nil {
		err = l.to.Sync()
	}
	l.note(err)
	for _, one := range batch {
		if one.done != nil {
			one.done <- err
		} else if err != nil {
			l.lost.Inc()
		}
	}
}

// probe tries whether a log that failed can be written again.
func (l *Log) probe() { l.note(l.to.Sync()) }

func (l *Log) note(err error) {
	before := l.broken.Load()
	if err == nil {
		if l.broken.Store(nil); before != nil {
			l.opts.Log.Info("the audit log is written again")
		}
		return
	}
	text := err.Error()
	if l.broken.Store(&text); before == nil {
		l.opts.Log.Error("the audit log cannot be written", "file", l.opts.File, "error", err, "strict", l.opts.Strict)
	}
}

// IsStrict reports whether nothing may be acknowledged that is not on disk.
func (l *Log) IsStrict() bool { return l.opts.Strict }

// IsWanted reports whether the policy wants an event.
func (l *Log) IsWanted(e *Event) bool { return l.opts.Policy.IsWanted(e) }

// Write writes an event down. A strict log returns when it is on disk, or with the reason why
// it is not. Others return at once, and count the events that are lost.
func (l *Log) Write(ctx context.Context, e *Event) error {
	text, err := e.Line()
	if err != nil {
		return err
	}
	one := line{text: text}
	if l.opts.Strict {
		one.done = make(chan error, 1)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case l.lines <- one:
	case <-timer.C:
		l.lost.Inc()
		return errors.New("the audit log does not keep up")
	}
	if one.done == nil {
		return nil
	}
	select {
	case err := <-one.done:
		return err
	case <-timer.C:
		return errors.New("the disk of the audit log does not answer")
	}
}
