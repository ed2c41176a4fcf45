package proxied_test

import (
	"net/http"
	"testing"

	"github.com/pilot-api/pilot-api/server/proxied"
)

func TestHeader(t *testing.T) {
	for _, test := range []struct {
		name      string
		values    []string
		sign, own bool // whether it is a sign, and one where Envoys poll
	}{
		{"Accept", []string{"*/*"}, false, false},
		{"User-Agent", []string{"x-request-id"}, false, false},
		{"Via", []string{"1.1 a"}, true, true},
		{"via", []string{""}, true, true},
		{"Forwarded", []string{"for=1.2.3.4"}, true, true},
		{"X-Request-Id", []string{"a"}, true, true},
		{"x-request-id", nil, true, true},
		{"X-Real-Ip", []string{"1.2.3.4"}, true, true},
		{"X-Forwarded-Proto", []string{"http"}, true, true},
		{"X-Forwarded-Host", []string{"a"}, true, true},
		{"X-Forwarded-For", []string{"1.2.3.4"}, true, false},
		{"X-Forwarded-For", []string{"1.2.3.4, 5.6.7.8"}, true, true},
		{"X-Forwarded-For", []string{"1.2.3.4", "5.6.7.8"}, true, true},
		{"X-Envoy-Internal", []string{"true"}, true, false},
		{"X-Envoy-Expected-Rq-Timeout-Ms", []string{"1000"}, true, false},
		{"X-Envoy-Attempt-Count", []string{"1"}, true, true},
		{"X-Envoy-Original-Path", []string{"/"}, true, true},
	} {
		h := http.Header{"Host": {"a"}, test.name: test.values}
		if sign, own := proxied.Header(h) != "", proxied.EnvoysOwn(h) != ""; sign != test.sign || own != test.own {
			t.Errorf("%s %q: %v and %v, want %v and %v", test.name, test.values, sign, own, test.sign, test.own)
		}
	}
}
