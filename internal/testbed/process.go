// Package testbed runs real programs for tests and does to them what a bad day
// does: kills, pauses, and networks that fail. A Process is any program; a
// Server is a pilot-api, Etcd an etcd of any number of members that are reached
// over Links.
package testbed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopLimit is how long a program may take to end in order, on any machine.
const stopLimit = time.Minute

// Process is a program that may be started again as it was. Nothing else may be
// called while Start is; apart from that, all may be called at once.
type Process struct {
	Name string

	path string
	args []string
	log  string // Path of the file.
	cmd  *exec.Cmd
	done chan struct{} // Closed when the program has ended and was waited for.
}

// NewProcess describes a program; nothing runs yet. All its runs write to the
// file NAME.log in dir.
func NewProcess(dir, name, path string, args ...string) *Process {
	return &Process{Name: name, path: path, args: args, log: filepath.Join(dir, name+".log")}
}

// Start runs the program.
func (p *Process) Start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return nil
}

// Ended is closed when the program is over, and nil before its first start.
func (p *Process) Ended() <-chan struct{} { return p.done }

// over reports whether the program has ended.
func (p *Process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// PID is that of the run which was started last.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ExitCode is what the program ended with, and -1 before that or when a signal
// ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Kill ends the program at once, as a power cut does, and waits until it is
// gone.
func (p *Process) Kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Stop asks the program to end and waits. One that does not is killed, and
// that is an error; one that never was, even nil, is none.
func (p *Process) Stop() error {
	if p == nil || p.cmd == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // Its stacks go to the log.
		select {
		case <-p.done:
		case <-time.After(time.Second):
			p.Kill()
		}
		return fmt.Errorf("%s did not end %s after SIGTERM", p.Name, stopLimit)
	}
}

// Pause takes all processor time from the program until Resume. When it returns,
// none of its threads does anything any more, where the system tells.
func (p *Process) Pause() {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	for !p.stopped() {
		select {
		case <-p.done:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// stopped reports whether no thread of the program runs; a signal only asks them
// to stop.
func (p *Process) stopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		// The state follows the name, which may hold anything.
		if i := bytes.LastIndexByte(stat, ')'); err == nil && !bytes.HasPrefix(stat[i+1:], []byte(" T")) {
			return false
		}
	}
	return true
}

// Resume ends a Pause.
func (p *Process) Resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// Stacks lets the program write the stacks of its goroutines to its log, and
// end.
func (p *Process) Stacks() {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	<-p.done
}

// Memory is what the program holds now and the most that it ever held, in
// bytes; 0 where the system does not tell.
func (p *Process) Memory() (now, most int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	return kilobytes(text, "VmRSS:"), kilobytes(text, "VmHWM:")
}

// Files is how many files and connections the program has open, 0 where the system
// does not tell.
func (p *Process) Files() int {
	open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(open)
}

// ticks is how many parts of a second the kernel counts processor time in.
const ticks = 100

// CPU is the processor time that the program has taken, 0 where the system does
// not tell.
func (p *Process) CPU() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var total int64
	// The name may hold anything; what follows is the state, and ten numbers
	// before those of the user's and the system's time.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseInt(string(f), 10, 64)
		total += n
	}
	return time.Duration(total) * time.Second / ticks
}

func kilobytes(status []byte, name string) int64 {
	_, rest, _ := bytes.Cut(status, []byte(name))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return n << 10
}

// Tail is the last lines of the log.
func (p *Process) Tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// Until tries every now and then, until try succeeds. It fails when ctx ends,
// which should bound it, or the program does; the error says what was still
// missing. Programs are watched this way because they offer nothing to wait on.
func (p *Process) Until(ctx context.Context, what string, try func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.Ended():
			return fmt.Errorf("waiting for %s: %s has ended (%v); its last words:\n%s", what, p.Name, p.cmd.ProcessState, p.Tail())
		case <-ctx.Done():
			err = fmt.Errorf("waiting for %s: %w; last: %w", what, context.Cause(ctx), err)
			if p.cmd != nil {
				err = fmt.Errorf("%w; the last words of %s:\n%s", err, p.Name, p.Tail())
			}
			return err
		}
	}
}

// Until is the same of no program in particular.
func Until(ctx context.Context, what string, try func(context.Context) error) error {
	return new(Process).Until(ctx, what, try)
}
