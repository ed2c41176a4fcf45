package testbed

import (
	"fmt"
	"os/exec"
)

// Build builds commands of the working tree, such as "pilot-api", into dir, so that
// tests never run outdated programs.
func Build(dir string, commands ...string) error {
	args := []string{"build", "-o", dir + "/"}
	for _, c := range commands {
		args = append(args, "github.com/pilot-api/pilot-api/cmd/"+c)
	}
	build := exec.Command("go", args...)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", build, err, out)
	}
	return nil
}
