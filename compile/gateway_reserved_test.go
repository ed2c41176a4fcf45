package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// TestReservedHosts: a host that a Gateway reserves for a namespace stays with it at
// the port, whichever Gateway others use.
func TestReservedHosts(t *testing.T) {
	const host = "secure.example.com"
	plain := spec{"number": 80, "name": "http", "protocol": "HTTP"}
	gateway := func(name string, redirect bool, hosts ...string) func(namespace string) *schema.Object {
		return func(namespace string) *schema.Object {
			return objectIn(t, namespace, "Gateway", name, spec{"servers": []spec{{"port": plain, "hosts": hosts, "tls": spec{"httpsRedirect": redirect}}}})
		}
	}
	rule := func(host, gateway string, status int) func(namespace string) *schema.Object {
		return func(namespace string) *schema.Object {
			return objectIn(t, namespace, "VirtualService", fmt.Sprint("rule-", status), spec{
				"hosts": []string{host}, "gateways": []string{gateway}, "http": []spec{{"directResponse": spec{"status": status}}}})
		}
	}
	prod, evil := "prod", "evil"
	type made struct {
		namespace string
		object    func(string) *schema.Object
	}
	for _, test := range []struct {
		name    string
		objects []made // the oldest first
		want    string // statuses for the host, in order
		refused string // VirtualServices that are not served
	}{
		{"both open", []made{{prod, gateway("a", false, host)}, {prod, rule(host, "a", 201)}, {evil, gateway("b", false, host)}, {evil, rule(host, "b", 202)}}, "201", ""},
		{"reserved first", []made{{prod, gateway("a", false, "prod/"+host)}, {evil, gateway("b", false, host)}, {evil, rule(host, "b", 202)}, {prod, rule(host, "a", 201)}}, "201", "rule-202"},
		{"with a dot", []made{{prod, gateway("a", false, "./"+host)}, {evil, gateway("b", false, host)}, {evil, rule(host, "b", 202)}, {prod, rule(host, "a", 201)}}, "201", "rule-202"},
		{"by way of a wildcard", []made{{prod, gateway("a", false, "prod/"+host)}, {evil, gateway("b", false, "*")}, {evil, rule(host, "b", 202)}, {prod, rule(host, "a", 201)}}, "201", "rule-202"},
		{"a later rule by way of an older Gateway", []made{{evil, gateway("b", false, "*")}, {prod, gateway("a", false, "prod/"+host)}, {prod, rule(host, "a", 201)}, {evil, rule(host, "b", 202)}}, "201", "rule-202"},
		{"an older rule of a later Gateway", []made{{evil, rule(host, "b", 202)}, {prod, gateway("a", false, "prod/"+host)}, {prod, rule(host, "a", 201)}, {evil, gateway("b", false, "*")}}, "201", "rule-202"},
		{"redirected by another", []made{{prod, gateway("a", false, "prod/"+host)}, {prod, rule(host, "a", 201)}, {evil, gateway("b", true, host)}, {evil, rule(host, "b", 202)}}, "201", "rule-202"},
		{"a redirect", []made{{prod, gateway("a", true, "prod/"+host)}, {evil, gateway("b", false, host)}, {evil, rule(host, "b", 202)}}, "301", "rule-202"},
		{"a redirect of another without rules", []made{{prod, gateway("a", false, "prod/"+host)}, {evil, gateway("b", true, host)}}, "", ""},
		{"reserved too late", []made{{evil, gateway("b", false, host)}, {evil, rule(host, "b", 202)}, {prod, gateway("a", false, "prod/"+host)}, {prod, rule(host, "a", 201)}}, "202", "rule-201"},
		{"a wildcard", []made{{prod, gateway("a", false, "prod/*.example.com")}, {prod, rule(host, "a", 201)}, {evil, gateway("b", false, host)}, {evil, rule(host, "b", 202)}}, "201", "rule-202"},
		{"a wildcard that nobody binds", []made{{prod, gateway("a", false, "prod/*")}, {evil, gateway("b", false, "evil/*")}, {evil, rule(host, "b", 202)}}, "202", ""},
		{"a namespace that is allowed", []made{{prod, gateway("a", false, "prod/"+host, "evil/*.example.com")}, {evil, gateway("b", false, host)}, {evil, rule(host, "b", 202)}, {prod, rule(host, "a", 201)}}, "202", ""},
		{"another host", []made{{prod, gateway("a", false, "prod/other.example.com")}, {evil, gateway("b", false, host)}, {evil, rule(host, "b", 202)}}, "202", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var objs []*schema.Object
			for i, m := range test.objects {
				objs = append(objs, created(t, m.object(m.namespace), 2000+i))
			}
			config, problems := compiled(t, "router~10.9.0.1~edge.default~default.svc.cluster.local", objs)
			var found, refused []string
			for _, table := range config.RouteTables {
				for _, h := range table.VirtualHosts {
					for _, r := range h.Routes {
						switch {
						case !slices.Contains(h.Domains, host):
						case r.Redirect != nil:
							found = append(found, "301")
						default:
							found = append(found, fmt.Sprint(r.Response.Status))
						}
					}
				}
			}
			for _, p := range problems {
				if p.Code == diag.HostNotServed {
					refused = append(refused, p.Object.Name)
				}
			}
			if got := strings.Join(found, " "); got != test.want {
				t.Errorf("requests get %q, want %q", got, test.want)
			}
			if got := strings.Join(refused, " "); got != test.refused {
				t.Errorf("not served are %q, want %q\n%v", got, test.refused, problems)
			}
		})
	}
}
