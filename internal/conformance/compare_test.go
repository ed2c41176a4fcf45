package main

import (
	"strings"
	"testing"
)

func TestCompareIgnores(t *testing.T) {
	for _, test := range []struct{ what, a, b string }{
		{"white space and key order", `{"a":1,"b":2}`, "{ \"b\": 2,\n\"a\": 1 }"},
		{"order of clusters", `{"clusters":[{"name":"a"},{"name":"b"}]}`, `{"clusters":[{"name":"b"},{"name":"a"}]}`},
		{"order of listeners", `{"listeners":[{"address":"a"},{"address":"b"}]}`, `{"listeners":[{"address":"b"},{"address":"a"}]}`},
		{"order of virtual hosts", `{"virtual_hosts":[{"name":"a"},{"name":"b"}]}`, `{"virtual_hosts":[{"name":"b"},{"name":"a"}]}`},
		{"also within a listener", `{"route_config":{"virtual_hosts":[{"name":"a"},{"name":"b"}]}}`, `{"route_config":{"virtual_hosts":[{"name":"b"},{"name":"a"}]}}`},
		{"order of domains", `{"virtual_hosts":[{"domains":["a","b"]}]}`, `{"virtual_hosts":[{"domains":["b","a"]}]}`},
		{"order of instances", `{"hosts":[{"port":1},{"port":2}]}`, `{"hosts":[{"port":2},{"port":1}]}`},
		{"also in the list of all", `[{"hosts":[{"port":1},{"port":2}]}]`, `[{"hosts":[{"port":2},{"port":1}]}]`},
		{"order of header matches", inRoute(`"headers":[{"name":"a"},{"name":"b"}]`), inRoute(`"headers":[{"name":"b"},{"name":"a"}]`)},
		{"order of added headers", inRoute(`"request_headers_to_add":[{"key":"a"},{"key":"b"}]`), inRoute(`"request_headers_to_add":[{"key":"b"},{"key":"a"}]`)},
		{"order of faults", filters(`{"name":"fault","config":1},{"name":"fault","config":2},{"name":"router"}`), filters(`{"name":"fault","config":2},{"name":"fault","config":1},{"name":"router"}`)},
		{"type of cors", filters(`{"name":"cors","type":""}`), filters(`{"name":"cors","type":"decoder"}`)},
	} {
		if err := compare([]byte(test.a), []byte(test.b)); err != nil {
			t.Errorf("%s: %v", test.what, err)
		}
	}
}

func TestCompareNotices(t *testing.T) {
	for _, test := range []struct{ what, want, got, says string }{
		{"order of routes", inRoute(`"prefix":"/a"},{"prefix":"/"`), inRoute(`"prefix":"/"},{"prefix":"/a"`), `$.virtual_hosts[0].routes[0].prefix: want "/a", got "/"`},
		{"a domain", `{"virtual_hosts":[{"name":"v","domains":["a"]}]}`, `{"virtual_hosts":[{"name":"v","domains":["a","b"]}]}`, `$.virtual_hosts["v"].domains[1]: want nothing, got "b"`},
		{"order of filters", filters(`{"name":"cors"},{"name":"fault"}`), filters(`{"name":"fault"},{"name":"cors"}`), `name: want "cors", got "fault"`},
		{"order of weighted clusters", inRoute(`"weighted_clusters":{"clusters":[{"name":"a"},{"name":"b"}]}`), inRoute(`"weighted_clusters":{"clusters":[{"name":"b"},{"name":"a"}]}`), `name: want "a", got "b"`},
		{"absent and 0", `{"timeout_ms":0}`, `{}`, `$.timeout_ms: want 0, got nothing`},
		{"absent and empty", `{}`, `{"ssl_context":{}}`, `$.ssl_context: want nothing, got {}`},
		{"a text for a number", `{"max_age":"300"}`, `{"max_age":300}`, `$.max_age: want "300", got 300`},
		{"order of a cluster's hosts", `{"clusters":[{"name":"a","hosts":[1,2]}]}`, `{"clusters":[{"name":"a","hosts":[2,1]}]}`, `$.clusters["a"].hosts[0]: want 1, got 2`},
		{"a missing cluster", `{"clusters":[{"name":"a"},{"name":"b"}]}`, `{"clusters":[{"name":"b"}]}`, `$.clusters["a"]: want {"name":"a"}, got nothing`},
		{"a cluster too many", `{"clusters":[{"name":"b"}]}`, `{"clusters":[{"name":"b"},{"name":"a"}]}`, `$.clusters["a"]: want nothing, got {"name":"a"}`},
		{"a cluster twice", `{"clusters":[{"name":"b"}]}`, `{"clusters":[{"name":"b"},{"name":"b"}]}`, `$.clusters["b"]: want nothing, got {"name":"b"}`},
		{"type of another filter", filters(`{"name":"router","type":"decoder"}`), filters(`{"name":"router","type":""}`), `type: want "decoder", got ""`},
		{"another shape", `{"hosts":[]}`, `{"hosts":{}}`, `$.hosts: want [], got {}`},
		{"no JSON", `{}`, `sorry`, `the answer is not JSON`},
	} {
		err := compare([]byte(test.want), []byte(test.got))
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %s", test.what, err, test.says)
		}
	}
}

// inRoute is a table with these members in its only route.
func inRoute(members string) string {
	return `{"virtual_hosts":[{"routes":[{` + members + `}]}]}`
}

// filters is a listener's HTTP filter list.
func filters(list string) string {
	return `{"listeners":[{"filters":[{"config":{"filters":[` + list + `]}}]}]}`
}
