package explain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/ir"
)

// routed is a proxy with one listener at port 80 for everything, whose routes have
// the matches, each for a rule of its number.
func routed(matches ...ir.Match) explain.Proxy {
	h := &ir.VirtualHost{Name: "h", Domains: []string{"*"}}
	for i, m := range matches {
		h.Routes = append(h.Routes, &ir.Route{
			Match: m, Response: &ir.DirectResponse{Status: 200 + i}, Origins: []diag.Ref{{Kind: "VirtualService", Name: string(rune('a' + i))}},
		})
	}
	table := &ir.RouteTable{Name: "80", VirtualHosts: []*ir.VirtualHost{h}}
	return explain.Proxy{Config: &ir.Config{
		RouteTables: []*ir.RouteTable{table},
		Listeners:   []*ir.Listener{{IP: "0.0.0.0", Port: 80, Bind: true, HTTP: &ir.HTTPListener{Table: "80"}}},
	}}
}

func ask(t *testing.T, p explain.Proxy, target string, headers map[string]string) *explain.Explanation {
	t.Helper()
	all := map[string][]string{}
	for name, value := range headers {
		all[name] = []string{value}
	}
	r, err := explain.NewRequest("", target, all)
	if err != nil {
		t.Fatal(err)
	}
	return p.Ask(r)
}

func TestTheConditionThatFails(t *testing.T) {
	for _, c := range []struct {
		match  ir.Match
		failed string // "" where it takes the request
	}{
		{ir.Match{}, ""},
		{ir.Match{Path: "/a"}, ""},
		{ir.Match{Path: "/A"}, `path must be "/A", is "/a"`},
		{ir.Match{Path: "/A", IgnoreCase: true}, ""},
		{ir.Match{Prefix: "/b"}, `path must begin with "/b", is "/a"`},
		{ir.Match{Prefix: "/B", IgnoreCase: true}, `path must begin with "/B" in any case, is "/a"`},
		{ir.Match{Regex: "/[ab]"}, ""},
		{ir.Match{Regex: "/"}, `path must match /, is "/a"`},
		{ir.Match{Headers: []ir.HeaderMatch{{Name: "user", Exact: "jason"}}}, ""},
		{ir.Match{Headers: []ir.HeaderMatch{{Name: "user", Prefix: "ja"}, {Name: "user", Regex: "j"}}}, `header user must match j, is "jason"`},
		{ir.Match{Headers: []ir.HeaderMatch{{Name: "user", Exact: "jason", Not: true}}}, `header user must not be "jason", is "jason"`},
		{ir.Match{Headers: []ir.HeaderMatch{{Name: "other", Exact: "x", Not: true}}}, ""},
		{ir.Match{Headers: []ir.HeaderMatch{{Name: "other", Present: true}}}, `header other must be there, is not there`},
		{ir.Match{Headers: []ir.HeaderMatch{{Name: "user", Present: true, Not: true}}}, `header user must not be there, is "jason"`},
		{ir.Match{Headers: []ir.HeaderMatch{{Name: ":method", Exact: "POST"}}}, `method must be "POST", is "GET"`},
		{ir.Match{Headers: []ir.HeaderMatch{{Name: "authorization", Exact: "Bearer swordfish"}}}, `header authorization must be (hidden), is another`},
		{ir.Match{Query: []ir.QueryMatch{{Name: "q", Exact: "1"}}}, ""},
		{ir.Match{Query: []ir.QueryMatch{{Name: "q", Regex: "[2-9]"}}}, `query parameter q must match [2-9], is "1"`},
		{ir.Match{Query: []ir.QueryMatch{{Name: "r", Present: true}}}, `query parameter r must be there, is not there`},
	} {
		e := ask(t, routed(c.match, ir.Match{}), "http://h/a?q=1", map[string]string{"User": "jason", "Authorization": "Bearer shark"})
		var failed string
		if len(e.Passed) > 0 {
			failed = e.Passed[0].Failed
		}
		if failed != c.failed || e.Answer.Status != 200+len(e.Passed) {
			t.Errorf("%+v: got %q and %d, want %q", c.match, failed, e.Answer.Status, c.failed)
		}
	}
}

// TestSecretsAreNotRepeated: an explanation goes through logs and terminals.
func TestSecretsAreNotRepeated(t *testing.T) {
	p := routed(ir.Match{Headers: []ir.HeaderMatch{{Name: "x-api-key", Exact: "swordfish"}}, Query: []ir.QueryMatch{{Name: "token", Exact: "swordfish"}}}, ir.Match{})
	e := ask(t, p, "http://h/?a=1&token=swordfish", map[string]string{"X-Api-Key": "swordfish"})
	if len(e.Passed) > 0 {
		t.Fatalf("it fits the first: %+v", e.Passed)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var person strings.Builder
	if err := e.Write(&person); err != nil {
		t.Fatal(err)
	}
	if all := string(text) + person.String(); strings.Contains(all, "swordfish") || !strings.Contains(all, "a=1&token=(hidden)") {
		t.Errorf("got %s", all)
	}
}

// TestSecretsOfPathsAreNotRepeated: a path goes on, is redirected to and is compared
// with its query.
func TestSecretsOfPathsAreNotRepeated(t *testing.T) {
	p := routed(ir.Match{Headers: []ir.HeaderMatch{{Name: ":path", Prefix: "/other"}}}, ir.Match{Prefix: "/redirect"}, ir.Match{})
	routes := p.Config.RouteTables[0].VirtualHosts[0].Routes
	routes[1].Response, routes[1].Redirect = nil, &ir.Redirect{Scheme: "https"}
	routes[2].Response, routes[2].Clusters = nil, []ir.WeightedCluster{{Name: "c", Weight: 1}}
	routes[2].Rewrite = &ir.Rewrite{Path: "/new"}
	const query = "?a=1&access_token=(hidden)&b=2"
	for path, at := range map[string]func(*explain.Explanation) string{
		"/redirect": func(e *explain.Explanation) string { return strings.TrimPrefix(e.Answer.Location, "https://h") },
		"/forward":  func(e *explain.Explanation) string { return e.Forward.Path },
	} {
		e := ask(t, p, "http://h"+path+"?a=1&access_token=swordfish&b=2", nil)
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "swordfish") || !strings.HasSuffix(at(e), query) || !strings.Contains(e.Passed[0].Failed, path+query) {
			t.Errorf("%s: got %s", path, text)
		}
	}
}

func TestConnectionsThatAreClosed(t *testing.T) {
	table := &ir.RouteTable{VirtualHosts: []*ir.VirtualHost{{Name: "h", Domains: []string{"*"}, Routes: []*ir.Route{{Response: ir.Unavailable()}}}}}
	p := explain.Proxy{IP: "10.0.0.1", Config: &ir.Config{Listeners: []*ir.Listener{
		{IP: "0.0.0.0", Port: 80, Bind: true, Direction: ir.Gateway, HTTP: &ir.HTTPListener{Inline: table}},
		{IP: "0.0.0.0", Port: 443, Bind: true, Direction: ir.Gateway, Chains: []*ir.FilterChain{
			{ServerNames: []string{"*.shop.example"}, TLS: &ir.ServerTLS{}, HTTP: &ir.HTTPListener{Inline: table}},
			{ServerNames: []string{"raw.example"}, TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Port: 444}}}},
		}},
	}}}
	for target, want := range map[string]string{
		"http://h/":                    "",
		"https://www.shop.example/":    "",
		"https://h:80/":                "the connection is closed: the listener speaks plain HTTP, and the caller begins TLS",
		"https://h/":                   "the connection is closed: no filter chain is for server name h",
		"http://www.shop.example:443/": "the connection is closed: no filter chain is for no server name",
		"https://raw.example/":         "the connection is closed: no route takes it",
		"http://h:81/":                 "nothing listens at 10.0.0.1:81",
	} {
		if got := ask(t, p, target, nil).Reason; got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// A token that cannot be read is of no issuer, but it is there, and it is refused.
func TestATokenThatCannotBeRead(t *testing.T) {
	p := routed(ir.Match{})
	p.Config.Listeners[0].HTTP.Tokens = &ir.Tokens{Rules: []ir.TokenRule{{Issuer: "https://login", Keys: "{}"}}}
	var b strings.Builder
	if err := ask(t, p, "http://h/", map[string]string{"Authorization": "Bearer garbage"}).Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"the request has none of this issuer", `the token in header authorization after "Bearer " is refused: it is no JSON Web Token`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "none in the request") {
		t.Errorf("a token that is there is denied:\n%s", text)
	}
}
