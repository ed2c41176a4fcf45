package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ArgsOr returns a cobra validator that reports its own error text.
func ArgsOr(validate cobra.PositionalArgs, format string, args ...any) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if validate(cmd, given) != nil {
			return Usagef(format, args...)
		}
		return nil
	}
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("'%s' takes no argument, found %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// AtMostOneArg refuses more than one argument.
func AtMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return Usagef("'%s' takes one argument at most, found %q", cmd.CommandPath(), args)
	}
	return nil
}

// blankAllowed are the flags whose blank value means the default, and nothing dangerous.
var blankAllowed = map[string]bool{"output": true}

// noneEmpty refuses a blank argument, and a blank value of a flag, for example from an unset
// variable. Neither must ever mean all objects of a kind, or other credentials, or no owner.
// Completion is exempt, because its arguments are not complete yet.
func noneEmpty(cmd *cobra.Command, args []string) (err error) {
	if cmd.Name() == cobra.ShellCompRequestCmd {
		return nil
	}
	for i, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return Usagef("argument %d of %s is empty: is a variable not set?", i+1, cmd.CommandPath())
		}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if isBlank(f.Value) && !blankAllowed[f.Name] && err == nil {
			err = Usage(fmt.Errorf("--%s is empty: is a variable not set?", f.Name))
		}
	})
	return err
}

// isBlank reports whether a value, or one of several, is blank.
func isBlank(v pflag.Value) bool {
	list, several := v.(pflag.SliceValue)
	if !several {
		return strings.TrimSpace(v.String()) == ""
	}
	for _, one := range list.GetSlice() {
		if strings.TrimSpace(one) == "" {
			return true
		}
	}
	return len(list.GetSlice()) == 0
}
