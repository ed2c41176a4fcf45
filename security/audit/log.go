package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/DeRuina/timberjack"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
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
	// queued bounds the lines that wait for the disk, and queuedBytes their bytes.
	queued      = 4096
	queuedBytes = 16 << 20
	// patience is how long a request of a strict log waits for its line.
	patience = 5 * time.Second
)

// sink is where lines go.
type sink interface {
	io.Writer
	// Sync returns when all lines are on disk.
	Sync() error
	Close() error
}

// Log writes events to a file. Requests that come at the same time share one sync of the
// disk. It is safe for concurrent use.
type Log struct {
	opts  Options
	to    sink
	lines chan line
	room  *semaphore.Weighted // bytes of lines that may wait
	lost  prometheus.Counter

	// Run alone uses these.
	broken bool // the last line could not be written
	torn   bool // the sink may end with a part of a line
}

type line struct {
	text []byte
	done chan error // nil if nobody waits
}

// weight returns the bytes that a line takes while it waits.
func (l line) weight() int64 { return min(int64(len(l.text)), queuedBytes) }

// New opens the log. Run writes its lines.
func New(opts Options) (*Log, error) {
	if opts.Strict && opts.Policy.omitsStages() {
		return nil, errors.New("--audit-strict: the policy must omit no stage, because nothing may be done before it is written down")
	}
	to, torn, err := open(opts)
	if err != nil {
		return nil, fmt.Errorf("--audit-log %s: %w", opts.File, err)
	}
	l := newLog(opts, to)
	l.torn = torn
	return l, nil
}

func newLog(opts Options, to sink) *Log {
	l := &Log{opts: opts, to: to, lines: make(chan line, queued), room: semaphore.NewWeighted(queuedBytes), lost: prometheus.NewCounter(prometheus.CounterOpts{
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

// open opens the sink. torn says that it ends with a part of a line, as after a crash.
func open(opts Options) (to sink, torn bool, err error) {
	if opts.File == "-" {
		return standardOutput{os.Stdout}, false, nil
	}
	// The first line must not be the first to find that there is no such folder.
	file, err := os.OpenFile(opts.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, false, err
	}
	info, err := file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, false, err
	}
	megabytes, backups := opts.MaxMegabytes, opts.Backups
	if megabytes == 0 {
		megabytes = 100
	}
	if backups == 0 {
		backups = 10
	}
	return &rotated{
		Logger: timberjack.Logger{Filename: opts.File, MaxSize: megabytes, MaxBackups: backups, FileMode: 0o600},
		size:   info.Size(), most: int64(megabytes) << 20,
	}, isTorn(opts.File, info.Size()), nil
}

// isTorn reports whether the last line of a file has no end, or cannot be read.
func isTorn(name string, size int64) bool {
	if size == 0 {
		return false
	}
	file, err := os.Open(name)
	if err != nil {
		return true
	}
	defer file.Close()
	var last [1]byte
	_, err = file.ReadAt(last[:], size-1)
	return err != nil || last[0] != '\n'
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
	for {
		select {
		case first := <-l.lines:
			l.write(first)
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
	for _, one := range batch {
		if err == nil {
			err = l.append(one.text)
		}
	}
	if err == nil {
		err = l.to.Sync()
		l.torn = l.torn || err != nil // Nobody knows what is on the disk.
	}
	l.note(err)
	for _, one := range batch {
		l.room.Release(one.weight())
		if one.done != nil {
			one.done <- err
		} else if err != nil {
			l.lost.Inc()
		}
	}
}

// append writes a line, on a line of its own also after a part of another one.
func (l *Log) append(text []byte) error {
	if l.torn {
		text = append([]byte{'\n'}, text...)
	}
	n, err := l.to.Write(text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if n > 0 {
		l.torn = n < len(text) && text[n-1] != '\n'
	}
	return err
}

// note logs the first failure, and the first success after one. Only a line that is written
// shows that the log works: a full disk can be synced.
func (l *Log) note(err error) {
	switch {
	case err == nil && l.broken:
		l.opts.Log.Info("the audit log is written again")
	case err != nil && !l.broken:
		l.opts.Log.Error("the audit log cannot be written", "file", l.opts.File, "error", err, "strict", l.opts.Strict)
	}
	l.broken = err != nil
}

// IsStrict reports whether a request may be acknowledged only when its event is on disk.
func (l *Log) IsStrict() bool { return l.opts.Strict }

// Decide returns what the policy wants of the events of a request.
func (l *Log) Decide(e *Event) Decision { return l.opts.Policy.Decide(e) }

// errBehind means that as many lines wait for the disk as may.
var errBehind = errors.New("the audit log does not keep up")

// Write records an event. If the log is strict, Write returns when the event is on disk, or
// after at most five seconds with the reason why it is not. Otherwise it returns at once,
// and counts lost events.
func (l *Log) Write(ctx context.Context, e *Event) error {
	if e.Level == "" {
		e.Level = LevelMetadata
	}
	text, err := e.Line()
	if err != nil {
		return err
	}
	if l.opts.Strict {
		return l.writeStrictly(ctx, line{text, make(chan error, 1)})
	}
	one := line{text: text}
	if !l.room.TryAcquire(one.weight()) {
		l.lost.Inc()
		return errBehind
	}
	select {
	case l.lines <- one:
		return nil
	default:
		l.room.Release(one.weight())
		l.lost.Inc()
		return errBehind
	}
}

// writeStrictly returns when a line is on disk. It does not end with the request: that may have
// been done, although its client is gone.
func (l *Log) writeStrictly(ctx context.Context, one line) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if l.room.Acquire(ctx, one.weight()) != nil {
		return errBehind
	}
	select {
	case l.lines <- one:
	case <-ctx.Done():
		l.room.Release(one.weight())
		return errBehind
	}
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
		return errors.New("the disk of the audit log does not answer")
	}
}
