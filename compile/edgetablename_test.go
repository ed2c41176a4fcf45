package compile_test

import (
	"maps"
	"testing"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestNamesOfEdgeTables: a connection that is held finds its routes by the name of their
// table. It stays when other servers come to the port and go, and over an edit of what
// says nothing of who is let in; what asks another thing of its clients has another.
func TestNamesOfEdgeTables(t *testing.T) {
	simple := func(file string) spec {
		return spec{"mode": "SIMPLE", "serverCertificate": "/" + file + ".crt", "privateKey": "/" + file + ".key"}
	}
	tls := func(more spec) spec {
		all := simple("one")
		all["mode"], all["caCertificates"] = "MUTUAL", "/ca.crt"
		maps.Copy(all, more)
		return all
	}
	name := func(own spec, others ...spec) string {
		servers := []spec{{"port": spec{"number": 443, "name": "https", "protocol": "HTTPS"}, "hosts": []string{"own.example"}, "tls": own}}
		for i, other := range others {
			host := string(rune('a'+i)) + ".example"
			servers = append(servers, spec{"port": spec{"number": 443, "name": host, "protocol": "HTTPS"}, "hosts": []string{host}, "tls": other})
		}
		objs := []*schema.Object{
			object(t, "Gateway", "edge", spec{"servers": servers}),
			object(t, "VirtualService", "own", spec{
				"hosts": []string{"own.example"}, "gateways": []string{"edge"}, "http": []spec{{"directResponse": spec{"status": 200}}},
			}),
		}
		config, _ := compiledAs(t, mesh.V1Compatibility{}, "router~10.7.7.8~edge~default.svc.cluster.local", objs)
		found := ""
		seen := map[string]bool{}
		for _, table := range config.RouteTables {
			if seen[table.Name] {
				t.Errorf("two tables are called %s", table.Name)
			}
			seen[table.Name] = true
			if servesHost(table, "own.example") {
				found = table.Name
			}
		}
		if found == "" || len(seen) != 1+len(others) {
			t.Errorf("%v beside %v: tables %v", own, others, seen)
		}
		return found
	}
	alone := name(tls(nil))
	for what, again := range map[string]string{
		"beside another":             name(tls(nil), simple("two")),
		"beside others":              name(tls(nil), simple("two"), simple("one")),
		"with another version":       name(tls(spec{"minProtocolVersion": "TLSV1_3"})),
		"with ciphers":               name(tls(spec{"cipherSuites": []string{"ECDHE-RSA-AES128-GCM-SHA256"}})),
		"with clients of any origin": name(tls(spec{"insecureSkipVerify": true})),
	} {
		if again != alone {
			t.Errorf("%s it is %s, alone %s", what, again, alone)
		}
	}
	for what, other := range map[string]string{
		"without certificates of clients": name(simple("one")),
		"with other certificates":         name(tls(spec{"serverCertificate": "/two.crt"})),
		"for certain clients":             name(tls(spec{"subjectAltNames": []string{"client.example"}})),
		"beside one much like it":         name(tls(nil), tls(spec{"minProtocolVersion": "TLSV1_3"})),
	} {
		if other == alone {
			t.Errorf("%s it is %s as well", what, other)
		}
	}
}

func servesHost(table *ir.RouteTable, host string) bool {
	for _, vh := range table.VirtualHosts {
		for _, domain := range vh.Domains {
			if domain == host {
				return true
			}
		}
	}
	return false
}
