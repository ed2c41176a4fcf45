// Package cluster runs the real programs for the consistency checker, and does
// to them what a bad day does: kills, pauses, and networks that fail.
package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// stopLimit is how long a program may take to end in order.
const stopLimit = 20 * time.Second

// Process is a program that may be started again as it was. It is not safe for
// concurrent use.
type Process struct {
	Name string

	path string
	args []string
	log  *os.File
	cmd  *exec.Cmd
	done chan struct{}
}

// newProcess describes a program; all its runs write to one log in dir.
func newProcess(dir, name, path string, args ...string) (*Process, error) {
	log, err := os.OpenFile(dir+"/"+name+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Process{Name: name, path: path, args: args, log: log}, nil
}

// Start runs the program.
func (p *Process) Start() error {
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
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

// Running reports whether the program was started and has not ended.
func (p *Process) Running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill ends the program at once, as the kernel does when memory is short.
func (p *Process) Kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Stop asks the program to end and waits. One that does not is killed, and
// that is an error.
func (p *Process) Stop() error {
	if p.cmd == nil {
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

// Pause takes all processor time from the program until Resume.
func (p *Process) Pause() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (p *Process) Resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// Stacks lets the program write the stacks of its goroutines to its log, and
// end.
func (p *Process) Stacks() {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	<-p.done
}

// Memory is what the program holds now and the most that it ever held, in
// bytes.
func (p *Process) Memory() (now, most int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	return kilobytes(text, "VmRSS:"), kilobytes(text, "VmHWM:")
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

// freeAddress is a loopback address that nobody listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// until tries every now and then, until it succeeds or ctx ends.
func until(ctx context.Context, what string, try func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w", what, context.Cause(ctx), err)
		}
	}
}
