package compile_test

import (
	"maps"
	"testing"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestNamesOfEdgeTables: an open connection finds its routes by the name of their table. The
// name stays while a server asks the same of its connections, and servers that ask for the
// same share a table.
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
		if found == "" {
			t.Errorf("%v beside %v: tables %v", own, others, seen)
		}
		return found
	}
	alone := name(tls(nil))
	for what, again := range map[string]string{
		"beside another":                    name(tls(nil), simple("two")),
		"beside others":                     name(tls(nil), simple("two"), simple("one")),
		"beside one much like it":           name(tls(nil), tls(spec{"minProtocolVersion": "TLSV1_3"})),
		"beside one that asks for the same": name(tls(nil), tls(spec{"serverCertificate": "/two.crt"})),
		"with another certificate":          name(tls(spec{"serverCertificate": "/two.crt", "privateKey": "/two.key"})),
	} {
		if again != alone {
			t.Errorf("%s it is %s, alone %s", what, again, alone)
		}
	}
	for what, other := range map[string]string{
		"without certificates of clients": name(simple("one")),
		"with other authorities":          name(tls(spec{"caCertificates": "/other.crt"})),
		"with optional certificates":      name(tls(spec{"mode": "OPTIONAL_MUTUAL"})),
		"for certain clients":             name(tls(spec{"subjectAltNames": []string{"client.example"}})),
		"with clients of any origin":      name(tls(spec{"insecureSkipVerify": true})),
		"with another version":            name(tls(spec{"minProtocolVersion": "TLSV1_3"})),
		"with ciphers":                    name(tls(spec{"cipherSuites": []string{"ECDHE-RSA-AES128-GCM-SHA256"}})),
	} {
		if other == alone {
			t.Errorf("%s it is %s as well", what, other)
		}
	}
	if one, two := name(simple("one")), name(simple("two")); one != two {
		t.Errorf("two servers that ask for nothing have the tables %s and %s", one, two)
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
