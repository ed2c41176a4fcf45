package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// asAgent makes the test binary the agent. Tests run it on machines of their own.
const asAgent = "PILOT_AGENT_OF_A_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// agent runs the agent in this process.
func agent(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = Main(context.Background(), args, &out, &errs)
	return out.String(), errs.String(), code
}

// TestUsage checks messages and exit codes of mistakes in the command line.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"capture instal":                            `pilot-agent capture has no command "instal"; did you mean install?`,
		"capture print -b 22":                       "pilot-agent: --istio-inbound-ports: port 22 is never captured",
		"capture print -p 0 -m X":                   "is no mode; REDIRECT and TPROXY are\npilot-agent: --envoy-port: \"0\" is no port: a number from 1 to 65535 is needed\n",
		"capture print --format yaml":               `--format: "yaml" is no format; nftables and iptables are`,
		"capture print extra":                       `no arguments are taken, found "extra"`,
		"capture install --force-iptables-binary x": `"x" is no variant; legacy and nft are`,
		"capture install --force-iptables-binary legacy --native-nftables": "contradict each other",
		"capture print --what": "unknown flag: --what",
		"completion tcsh":      "say for which shell",
	} {
		_, stderr, code := agent(strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(stderr, want) || !strings.HasSuffix(stderr, "Try 'pilot-agent --help'.\n") {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
		}
	}
}

// TestPrint checks that print needs no rights, and that variables of Istio set flags.
func TestPrint(t *testing.T) {
	t.Setenv("ISTIO_INBOUND_PORTS", "4000,5000")
	t.Setenv("ISTIO_SERVICE_CIDR", "10.0.0.0/8")
	out, stderr, code := agent("capture", "print", "-i", "10.1.0.0/16", "-m", "TPROXY")
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, want := range []string{
		"# nft -f -\nadd table inet pilot-agent\ndelete table inet pilot-agent\n",
		"tcp dport 5000 tproxy ip6 to :15006 accept", "ip daddr 10.1.0.0/16 meta l4proto tcp redirect to :15001",
		"# ip -6 rule add fwmark 1337 lookup 133\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nlacks %s", out, want)
		}
	}
	if strings.Contains(out, "10.0.0.0/8") {
		t.Error("a variable has precedence over a flag")
	}
	dry, _, code := agent("capture", "install", "--dry-run", "-i", "10.1.0.0/16", "-m", "TPROXY")
	if dry != out || code != 0 {
		t.Errorf("--dry-run prints\n%s", dry)
	}
	out, _, _ = agent("capture", "print", "--format", "iptables", "--dual-stack=false")
	if !strings.HasPrefix(out, "# iptables-restore --noflush\n*nat\n:PILOT_OUTPUT - [0:0]\n") || strings.Contains(out, "ip6tables") {
		t.Errorf("iptables:\n%s", out)
	}
	t.Setenv("ISTIO_INBOUND_PORTS", "22")
	if _, stderr, code := agent("capture", "print"); code != exitUsage || !strings.Contains(stderr, "--istio-inbound-ports: port 22") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
