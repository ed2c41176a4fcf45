package writes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The values of --dry-run.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// dryRunFlag is --dry-run of a verb that accepts some of the values. It refuses any
// other value before everything else, such as the next argument after a flag without a
// value. An error about that argument could lead the user to drop the dry run.
type dryRunFlag struct {
	value   *string
	allowed []string
}

func (f dryRunFlag) String() string { return *f.value }
func (f dryRunFlag) Type() string   { return "string" }

func (f dryRunFlag) Set(value string) error {
	if !slices.Contains(f.allowed, value) {
		return fmt.Errorf("want one of %s, as in --dry-run=%s", strings.Join(f.allowed, ", "), DryRunServer)
	}
	*f.value = value
	return nil
}

// AddDryRun adds the flag --dry-run to a command, with the values that it accepts.
func AddDryRun(cmd *cobra.Command, value *string, usage string, allowed ...string) {
	*value = DryRunNone
	cmd.Flags().Var(dryRunFlag{value, allowed}, "dry-run", usage)
	// The flag exists, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}
