package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// programTime is how long a program may take. iptables-restore may wait for the lock of
// another one.
const programTime = 30 * time.Second

// folders have the programs of the administrator, which are not on everybody's PATH.
var folders = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

// program returns the path of a program, or "".
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// run runs a program with an input and returns its output. The error has what the program
// said.
func run(ctx context.Context, input, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, programTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not stop it halfway.
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(input)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return out.String(), nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("%s did not end within %s", filepath.Base(path), programTime)
	}
	return "", fmt.Errorf("%s %s: %w: %.1000s", filepath.Base(path), strings.Join(args, " "), err, strings.TrimSpace(said.String()))
}
