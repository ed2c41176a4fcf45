package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/golden"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/ads"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/memory"
)

// TestFlagsPage keeps docs/reference/pilot-api.md as the code says. Run with
// -update after a change.
func TestFlagsPage(t *testing.T) {
	page := "# Flags of pilot-api\n\nEvery flag can also be set in the environment. The command line has precedence.\n\n" +
		"| flag | in the environment | default | meaning |\n|---|---|---|---|\n"
	var o options
	flags := pflag.NewFlagSet("pilot-api", pflag.ContinueOnError)
	o.register(flags)
	page += rows(flags)
	for _, cmd := range everyCommand(newCommand(io.Discard, newErrorStream(io.Discard)).Commands()) {
		page += fmt.Sprintf("\n## %s\n\n%s\n\n| flag | in the environment | default | meaning |\n|---|---|---|---|\n%s",
			cmd.CommandPath(), cmd.Long, rows(cmd.LocalFlags()))
	}
	golden.Page(t, "../../docs/reference/pilot-api.md", page)
}

func rows(flags *pflag.FlagSet) (rows string) {
	flags.VisitAll(func(f *pflag.Flag) {
		env := variable(f)
		rows += fmt.Sprintf("| `--%s` | `%s` | %s | %s |\n", f.Name, env, strings.Trim(f.DefValue, "[]"), f.Usage)
	})
	return rows
}

// everyCommand is those that do something.
func everyCommand(list []*cobra.Command) (all []*cobra.Command) {
	for _, cmd := range list {
		if cmd.HasSubCommands() {
			all = append(all, everyCommand(cmd.Commands())...)
			continue
		}
		all = append(all, cmd)
	}
	return all
}

var metricHelp = regexp.MustCompile(`(?m)^# HELP (pilot_[a-z0-9_]+) `)

// Somebody who looks at a graph at night finds each metric explained, over either
// store, also after requests.
func TestMetricsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"embedded": nil,
		"external": {"--etcd-endpoints", "http://" + linkTo(t, etcdtest.Start(t)).Addr()},
	} {
		p := startProgram(t, t.TempDir(), flags...)
		p.post("a", 10)
		p.answer(t, rulesPath)
		_, metrics := p.answer(t, "/metrics")
		names := metricHelp.FindAllStringSubmatch(metrics, -1)
		if len(names) < 20 {
			t.Errorf("%s: only %d metrics in\n%s", name, len(names), metrics)
		}
		for _, metric := range names {
			if !strings.Contains(string(page), "`"+metric[1]+"`") {
				t.Errorf("%s: docs/operations.md says nothing about %s", name, metric[1])
			}
		}
	}
	for _, metric := range describedMetrics() {
		if !strings.Contains(string(page), "`"+metric+"`") {
			t.Errorf("docs/operations.md says nothing about %s", metric)
		}
	}
}

var describedName = regexp.MustCompile(`fqName: "(pilot_[a-z0-9_]+)"`)

// describedMetrics are those of the parts that have some with labels, which are not
// seen until there is one.
func describedMetrics() (names []string) {
	registry := prometheus.NewRegistry()
	mem := memory.New()
	proxies := discovery.New(discovery.Options{Source: cache.New(mem, cache.Options{}), Registry: registry})
	server.New(server.Options{Store: mem, Reads: mem, Discovery: proxies, Registry: registry})
	ads.New(ads.Options{Discovery: proxies, Registry: registry})
	registerCertificateMetrics(registry, rotation.New(nil, slog.New(slog.DiscardHandler)))
	all := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(all)
		close(all)
	}()
	for desc := range all {
		names = append(names, describedName.FindStringSubmatch(desc.String())[1])
	}
	return names
}
