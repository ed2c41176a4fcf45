package outside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Validate makes the Envoy at a path load a complete bootstrap, JSON or YAML, as it does
// before it serves. Files that the bootstrap names without a folder are in dir. Validate
// returns Envoy's output. If Envoy refuses the bootstrap, the error has the beginning of
// that output.
func Validate(ctx context.Context, envoy, dir string, bootstrap []byte) (said []byte, err error) {
	file, err := os.CreateTemp("", "envoy-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(bootstrap)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, envoy, "--mode", "validate", "-c", file.Name(), "-l", "warning")
	cmd.Dir = dir
	if said, err = cmd.CombinedOutput(); err != nil {
		return said, fmt.Errorf("%w: %.2000s", err, said)
	}
	return said, nil
}
