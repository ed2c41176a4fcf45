package mesh_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

func TestParseProxy(t *testing.T) {
	for _, test := range []struct{ node, wantErr string }{
		{"sidecar~10.1.1.0~v0.default~default.svc.cluster.local", ""},
		{"sidecar~2001:db8::1~v0.default~default.svc.cluster.local", ""},
		{"ingress~10.3.3.3~ingress.default~default.svc.cluster.local", ""},
		{"router~~router.default~", ""},
		{"", "want four parts joined by ~"},
		{"sidecar~10.1.1.0~v0.default", "found 3"},
		{"sidecar~10.1.1.0~v0~default~x", "found 5"},
		{"egress~10.1.1.0~v0~default", "unknown role \"egress\", want sidecar, ingress or router"},
		{"Sidecar~10.1.1.0~v0~default", "unknown role"},
		{"sidecar~10.1.1~v0~default", "must be the IP address of the sidecar, found \"10.1.1\""},
		{"sidecar~~v0~default", "must be the IP address"},
		{"router~~" + strings.Repeat("a", 1<<10-9) + "~", ""},
		{"router~~" + strings.Repeat("a", 1<<10-8) + "~", "node of 1025 bytes, at most 1024 are allowed"},
		{"sidecar~10.1.1.0~v0é~default", ""},
		{"sidecar~10.1.1.0~v0\x1b[31m~default", "node \"sidecar~10.1.1.0~v0\\x1b[31m~default\": must be UTF-8 without control and format characters"},
		{"sidecar~10.1.1.0~v0~default\n", "must be UTF-8 without control"},
		{"router~\x7f~v0~default", "must be UTF-8 without control"},
		{"router~~v0\u009b31m~default", "must be UTF-8 without control"},
		{"router~~v0~\u202edefault", "must be UTF-8 without control"},
		{"router~~v0~\u200b", "must be UTF-8 without control"},
		{"router~~v0~\u2028", "must be UTF-8 without control"},
		{"router~~v0\x9b31m~default", "must be UTF-8 without control"},
	} {
		p, err := mesh.ParseProxy(test.node)
		switch {
		case test.wantErr == "" && err != nil:
			t.Errorf("%q: %v", test.node, err)
		case test.wantErr == "" && p.String() != test.node:
			t.Errorf("%q comes back as %q", test.node, p)
		case test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
			t.Errorf("%q: want error %q, found %v", test.node, test.wantErr, err)
		}
	}
}

func TestParseProxyWritesAddressesOneWay(t *testing.T) {
	for _, node := range []string{"sidecar~2001:DB8:0::1~a~b", "sidecar~2001:db8:0:0::1~a~b"} {
		p, err := mesh.ParseProxy(node)
		if err != nil || p.IP != "2001:db8::1" {
			t.Errorf("%s: found %q, %v", node, p.IP, err)
		}
	}
}
