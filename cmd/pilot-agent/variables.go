package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// variable returns the environment variable that sets a flag, or "". Flags with the names of
// Istio have its variables: ISTIO_INBOUND_PORTS sets --istio-inbound-ports.
func variable(f *pflag.Flag) string {
	if !strings.HasPrefix(f.Name, "istio-") {
		return ""
	}
	return strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fromEnvironment sets flags that are not on the command line from their variables.
func fromEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f)
		value, ok := os.LookupEnv(name)
		if name == "" || !ok || f.Changed || err != nil {
			return
		}
		if e := flags.Set(f.Name, value); e != nil {
			err = usage(fmt.Errorf("%s=%q: %w", name, value, e))
		}
	})
	return err
}
