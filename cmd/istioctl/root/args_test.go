package root

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
)

// TestWrongArgumentsAreUsageErrors gives each command no argument and too many. If the command
// refuses them by itself, that is wrong usage, in words of this program and not of cobra.
func TestWrongArgumentsAreUsageErrors(t *testing.T) {
	var out bytes.Buffer
	c := &cli.Program{Stdin: &out, Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			check(sub)
		}
		for _, args := range [][]string{{}, {"x"}, {"a", "b", "c", "d"}} {
			if cmd.Args == nil {
				continue // The command checks them when it runs.
			}
			err := cmd.Args(cmd, args)
			if err == nil {
				continue
			}
			if !cli.IsUsage(err) {
				t.Errorf("%s %q: %v is no usage error", cmd.CommandPath(), args, err)
			}
			for _, validate := range []cobra.PositionalArgs{cobra.NoArgs, cobra.ExactArgs(1), cobra.ExactArgs(2), cobra.MaximumNArgs(1), cobra.MaximumNArgs(2), cobra.MinimumNArgs(1)} {
				if own := validate(cmd, args); own != nil && own.Error() == fmt.Sprint(err) {
					t.Errorf("%s %q: %v is a text of cobra", cmd.CommandPath(), args, err)
				}
			}
		}
	}
	check(New(c))
}
