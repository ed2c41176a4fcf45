// Package testbed runs real programs for tests and makes them fail: it kills and pauses
// them and disturbs their networks. A Process is any program, a Server is a pilot-api,
// and an Etcd is an etcd with any number of members, connected over Links.
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

// stopLimit is the time that a program has to end by itself, on any machine.
const stopLimit = time.Minute

// Process is a program that can be started again with the same arguments. Its methods
// are safe for concurrent use, except during Start.
type Process struct {
	Name string

	path string
	args []string
	log  string // The path of the file.
	cmd  *exec.Cmd
	done chan struct{} // Closed when the program has ended and was waited for.
}

// NewProcess describes a program but does not start it. All its runs write to the file
// NAME.log in dir.
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

// Ended returns a channel that is closed when the program ends. It is nil before the
// first start.
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

// PID returns the process id of the last run.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ExitCode returns the program's exit code, or -1 if it has not ended or was ended by a
// signal.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Kill ends the program at once, as a power failure does, and waits until it is gone.
func (p *Process) Kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Stop asks the program to end and waits. If the program does not end, Stop kills it and
// returns an error. It returns nil for a program that never ran, and for a nil Process.
func (p *Process) Stop() error {
	if p == nil || p.cmd == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // The program writes its stacks to the log.
		select {
		case <-p.done:
		case <-time.After(time.Second):
			p.Kill()
		}
		return fmt.Errorf("%s did not end %s after SIGTERM", p.Name, stopLimit)
	}
}

// Pause stops the program until Resume. When Pause returns, none of its threads runs, if
// the system reports that.
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

// stopped reports whether no thread of the program runs. A signal only asks threads to
// stop.
func (p *Process) stopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		// The state follows the name, which may contain anything.
		if i := bytes.LastIndexByte(stat, ')'); err == nil && !bytes.HasPrefix(stat[i+1:], []byte(" T")) {
			return false
		}
	}
	return true
}

// Resume ends a Pause.
func (p *Process) Resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// Stacks makes the program write the stacks of its goroutines to its log, and end.
func (p *Process) Stacks() {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	<-p.done
}

// Memory returns the program's current and its maximum memory in bytes, 0 if the system
// does not report them.
func (p *Process) Memory() (now, most int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	return kilobytes(text, "VmRSS:"), kilobytes(text, "VmHWM:")
}

// Files returns the number of open files and connections of the program, 0 if the system
// does not report it.
func (p *Process) Files() int {
	open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(open)
}

// ticks is the number of clock ticks per second of the kernel's processor times.
const ticks = 100

// CPU returns the processor time of the program, 0 if the system does not report it.
func (p *Process) CPU() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var total int64
	// The name may contain anything. The state and ten numbers follow it, and then the
	// user time and the system time.
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

// Tail returns the last lines of the log.
func (p *Process) Tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// Until calls try repeatedly until it succeeds. It fails when the program ends or when
// ctx does, which should have a limit. The error says what was still missing. Until
// polls because programs offer nothing to wait for.
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

// Until is like Process.Until, but for no program in particular.
func Until(ctx context.Context, what string, try func(context.Context) error) error {
	return new(Process).Until(ctx, what, try)
}
