package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Row is a rule and its expected effect.
type Row struct {
	Rules  []string // Files of the setting, without .yaml; the last names the row.
	Should string   // What should happen, for people.

	// AtOnce is the number of concurrent requests; 0 is ten.
	AtOnce int
	Ask    func(i int) Ask
	// Did describes, for people, what happened and what was wrong. wrong is "" if all is
	// well.
	Did func(*Traffic) (did, wrong string)
}

// Title returns the name of the row in tables and tests.
func (r Row) Title() string {
	if len(r.Rules) == 0 {
		return "(no rule)"
	}
	return r.Rules[len(r.Rules)-1]
}

// Rows are the rows of the bookshop, in the order in which they are tried.
var Rows = []Row{
	{
		Should: "a third of the requests to each version of reviews",
		Ask:    get("reviews"),
		Did: func(t *Traffic) (string, string) {
			return t.tally(version), firstOf(t.share("v1", 1./3), t.share("v2", 1./3), t.share("v3", 1./3))
		},
	},
	{
		Rules:  []string{"all-to-v1"},
		Should: "all requests to v1",
		Ask:    get("reviews"),
		Did: func(t *Traffic) (string, string) {
			return t.tally(version), t.all("from v1", from("v1"))
		},
	},
	{
		Rules:  []string{"half-v1-half-v3"},
		Should: "half of the requests to v1, half to v3",
		Ask:    get("reviews"),
		Did: func(t *Traffic) (string, string) {
			return t.tally(version), firstOf(t.share("v1", .5), t.share("v3", .5), t.all("from v1 or v3", from("v1", "v3")))
		},
	},
	{
		Rules:  []string{"jason-to-v2"},
		Should: "v2 for cookie user=jason, v1 for the others",
		Ask:    halfJason("reviews", cookie),
		Did:    byCaller("v2", "v1"),
	},
	{
		Rules:  []string{"jason-delayed"},
		Should: "0.3 s of delay for jason, none for the others",
		Ask:    halfJason("ratings", cookie),
		Did:    delayed,
	},
	{
		Rules:  []string{"quarter-aborted"},
		Should: "503 for a quarter of the requests, unseen by ratings",
		Ask:    get("ratings"),
		Did: func(t *Traffic) (string, string) {
			arrived := t.Hits[Backend("ratings", "v1")]
			return fmt.Sprintf("%s; ratings saw %d", t.tally(status), arrived),
				firstOf(t.share("status 503", .25), t.equal("requests at ratings", arrived, t.count(ok)))
		},
	},
	{
		Rules:  []string{"mirror-to-v3"},
		Should: "all requests to v1, a copy of each to v3",
		Ask:    get("reviews"),
		Did: func(t *Traffic) (string, string) {
			copies := t.Hits[Backend("reviews", "v3")]
			return fmt.Sprintf("%s; v3 saw %d", t.tally(version), copies),
				firstOf(t.all("from v1", from("v1")), t.equal("copies at v3", copies, Requests))
		},
	},
	{
		Rules:  []string{"retried"},
		Should: "200 for all, although each first attempt fails",
		// Envoy allows three concurrent retries to a cluster, and fails the rest.
		AtOnce: 2,
		Ask: func(i int) Ask {
			return Ask{Service: "ratings", Path: "/", Header: http.Header{FailFirst: {strconv.Itoa(i)}}}
		},
		Did: func(t *Traffic) (string, string) {
			attempts := t.Hits[Backend("ratings", "v1")]
			return fmt.Sprintf("%s; ratings saw %d", t.tally(status), attempts),
				firstOf(t.all("200", ok), t.equal("attempts at ratings", attempts, 2*Requests))
		},
	},
	{
		Rules:  []string{"timed-out"},
		Should: "504 for all, since details never answers",
		Ask: func(int) Ask {
			return Ask{Service: "details", Path: "/", Header: http.Header{Hang: {"yes"}}}
		},
		Did: func(t *Traffic) (string, string) {
			return t.tally(status), t.all("504", func(a *Answer) bool { return a.Status == http.StatusGatewayTimeout })
		},
	},
	{
		Rules:  []string{"rewritten"},
		Should: "details sees /details/7 for /books/7",
		Ask:    func(int) Ask { return Ask{Service: "details", Path: "/books/7"} },
		Did: func(t *Traffic) (string, string) {
			seen := func(a *Answer) string { return a.Echo.Path }
			return t.tally(seen), t.all("/details/7", func(a *Answer) bool { return seen(a) == "/details/7" })
		},
	},
	{
		Rules:  []string{"redirected"},
		Should: "301 to books.example.com for /old",
		Ask:    func(int) Ask { return Ask{Service: "details", Path: "/old/7"} },
		Did: func(t *Traffic) (string, string) {
			where := func(a *Answer) string { return status(a) + " " + a.Location }
			return t.tally(where), t.all("301 to the new address", func(a *Answer) bool {
				return a.Status == http.StatusMovedPermanently && a.Location == "http://books.example.com/details/new"
			})
		},
	},
}

// get asks the service without special headers.
func get(service string) func(int) Ask {
	return func(int) Ask { return Ask{Service: service, Path: "/"} }
}

// cookie identifies jason to the bookshop.
var cookie = http.Header{"Cookie": {"theme=dark; user=jason"}}

// halfJason sends every other request as jason, with the header known.
func halfJason(service string, known http.Header) func(int) Ask {
	return func(i int) Ask {
		ask := Ask{Service: service, Path: "/"}
		if i%2 == 0 {
			ask.Header = known
		}
		return ask
	}
}

// byCaller checks that jason and the others get their own version or status.
func byCaller(jason, others string) func(*Traffic) (did, wrong string) {
	return func(t *Traffic) (string, string) {
		who := func(a *Answer) string { return caller(a) + " " + version(a) }
		return t.tally(who), t.all(jason+" for jason and "+others+" for others", func(a *Answer) bool {
			return version(a) == map[bool]string{true: jason, false: others}[a.asJason()]
		})
	}
}

// delayed judges the others by Envoy's own counter, because the time of a request without
// a delay depends on the machine. Envoy's timers count from the start of an iteration of
// its event loop, so a delay may end a little early.
func delayed(t *Traffic) (did, wrong string) {
	jason := t.count(func(a *Answer) bool { return a.asJason() })
	late := t.count(func(a *Answer) bool { return a.asJason() && a.Took >= 250*time.Millisecond })
	did = fmt.Sprintf("%d of jason's %d delayed; Envoy delayed %d of %d", late, jason, t.Delays, Requests)
	return did, firstOf(t.all("200", ok), t.equal("late answers for jason", late, jason), t.equal("delays by Envoy", t.Delays, jason))
}
