package main

import (
	"strings"
	"testing"
)

func TestSecretsStayWhereTheListenersAre(t *testing.T) {
	for _, c := range []struct {
		listen, grpc string
		says         string
	}{
		{"127.0.0.1:8080", "127.0.0.1:15010", ""},
		{"localhost:8080", "[::1]:15010", ""},
		{"127.0.0.1:8080", "", ""},
		{"127.0.0.1:8080", ":15010", "--grpc-listen"},
		{"0.0.0.0:8080", "127.0.0.1:15010", "--listen"},
		{"10.0.0.1:8080", "10.0.0.1:15010", "--listen"},
	} {
		o := options{listen: c.listen, grpcListen: c.grpc, insecure: true, domain: "cluster.local"}
		settings, err := o.settings(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := settings.SecretsWithheld; (got == "") != (c.says == "") || !strings.Contains(got, c.says+" ") && c.says != "" {
			t.Errorf("%s and %s: withheld as %q", c.listen, c.grpc, got)
		}
	}
}
