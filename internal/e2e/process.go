package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a program that runs until it is stopped, its output in a file.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string        // Path of the file.
	done chan struct{} // Closed when the program has ended and was waited for.
	err  error         // What Wait returned; read it after done only.
}

// start runs the command until ctx ends or stop is called. The log is
// dir/name.log; a restarted program goes on in the same file.
func start(ctx context.Context, dir, name, path string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.cmd = exec.CommandContext(ctx, path, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 10 * time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop asks the program to end, insists after a while, and waits for it. It
// may be called again and on a process that never was.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(p.cmd.WaitDelay):
		p.kill()
		return fmt.Errorf("%s did not end %v after SIGTERM and was killed:\n%s", p.name, p.cmd.WaitDelay, p.tail())
	}
}

// kill ends the program as a power cut would, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// ended is closed when the program is over, and never for no program.
func (p *process) ended() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.done
}

func (p *process) exitError() error {
	return fmt.Errorf("%s has ended (%v); its last words:\n%s", p.name, p.cmd.ProcessState, p.tail())
}

// tail returns the last lines of the log.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
