package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// bookinfo has more versions than the bookshop, and the rules of Istio's own
// sample in the kinds of networking.istio.io.
var bookinfo = Setting{
	Services: "testdata/bookinfo/services.yaml",
	Mesh:     "testdata/bookinfo/mesh.yaml",
	Rules:    filepath.Join(root, "examples", "bookinfo-networking"),
}

func TestBookinfo(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	assert(t, open(t, bookinfo, proxyPort), bookinfoRows)
}

func TestBookinfoOverADS(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	assert(t, open(t, bookinfo, proxyPortWith("--api", "ads")), bookinfoRows)
}

func TestBookinfoOverREST(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	assert(t, open(t, bookinfo, proxyPortWith("--api", "rest")), bookinfoRows)
}

func TestBookinfoOverV1(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	assert(t, open(t, bookinfo, captured), bookinfoRows)
}

// Each of the sample's files is tried.
func TestBookinfoComplete(t *testing.T) {
	tried := map[string]bool{mutualTLS: true}
	for _, row := range slices.Concat(bookinfoRows, gatewayRows) {
		for _, rule := range row.Rules {
			tried[rule] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(bookinfo.Rules, "*.yaml"))
	if err != nil || len(files) != len(tried) {
		t.Errorf("%d files, %d are tried; %v", len(files), len(tried), err)
	}
	for _, file := range files {
		if rule := strings.TrimSuffix(filepath.Base(file), ".yaml"); !tried[rule] {
			t.Errorf("%s is not tried", rule)
		}
	}
}

const subsets = "destination-rule-all"

var bookinfoRows = []Row{
	{
		Rules:  []string{subsets},
		Should: "a third to each version of reviews: subsets route nothing",
		Ask:    get("reviews"),
		Did:    shares(map[string]float64{"v1": 1. / 3, "v2": 1. / 3, "v3": 1. / 3}),
	},
	{
		Rules:  []string{"destination-rule-reviews"},
		Should: "a third to each version of reviews, at random",
		Ask:    get("reviews"),
		Did:    shares(map[string]float64{"v1": 1. / 3, "v2": 1. / 3, "v3": 1. / 3}),
	},
	{
		Rules:  []string{subsets, "virtual-service-all-v1"},
		Should: "v1 of every service",
		Ask:    each("productpage", "details", "ratings", "reviews"),
		Did:    always("v1"),
	},
	{
		Rules:  []string{subsets, "virtual-service-reviews-test-v2"},
		Should: "v2 for jason, v1 for others",
		Ask:    halfJason("reviews", endUser),
		Did:    byCaller("v2", "v1"),
	},
	{
		Rules:  []string{subsets, "virtual-service-reviews-jason-v2-v3"},
		Should: "v2 for jason, v3 for others",
		Ask:    halfJason("reviews", endUser),
		Did:    byCaller("v2", "v3"),
	},
	weights("virtual-service-reviews-50-v3", map[string]float64{"v1": .5, "v3": .5}),
	weights("virtual-service-reviews-80-20", map[string]float64{"v1": .8, "v2": .2}),
	weights("virtual-service-reviews-90-10", map[string]float64{"v1": .9, "v2": .1}),
	weights("virtual-service-reviews-v2-v3", map[string]float64{"v2": .5, "v3": .5}),
	{
		Rules:  []string{subsets, "virtual-service-reviews-v3"},
		Should: "v3 of reviews",
		Ask:    get("reviews"),
		Did:    always("v3"),
	},
	{
		Rules:  []string{subsets, "virtual-service-details-v2"},
		Should: "v2 of details",
		Ask:    get("details"),
		Did:    always("v2"),
	},
	database("virtual-service-ratings-db", "v2"),
	database("virtual-service-ratings-mysql", "v2-mysql"),
	database("virtual-service-ratings-mysql-vm", "v2-mysql-vm"),
	{
		Rules:  []string{subsets, "virtual-service-ratings-test-delay"},
		Should: "7 s of delay for jason, none for others",
		AtOnce: Requests, // Or the row would take minutes.
		Ask:    halfJason("ratings", endUser),
		Did:    delayed,
	},
	{
		Rules:  []string{subsets, "virtual-service-ratings-test-abort"},
		Should: "500 for jason, v1 for others",
		Ask:    halfJason("ratings", endUser),
		Did:    byCaller("status 500", "v1"),
	},
	{
		Rules:  []string{"fault-injection-details-v1"},
		Should: "555 for all, unseen by details",
		Ask:    get("details"),
		Did: func(t *Traffic) (string, string) {
			did, wrong := always("status 555")(t)
			arrived := t.Hits[Backend("details", "v1")] + t.Hits[Backend("details", "v2")]
			return did, firstOf(wrong, t.equal("requests at details", arrived, 0))
		},
	},
	{
		Rules:  []string{subsets, "egress-rule-google-apis"},
		Should: "no change for the services of the mesh",
		Ask:    get("ratings"),
		Did: func(t *Traffic) (string, string) {
			return t.tally(version), t.all("200", ok)
		},
	},
}

// each asks the services in turn.
func each(services ...string) func(int) Ask {
	return func(i int) Ask { return Ask{Service: services[i%len(services)], Path: "/"} }
}

// endUser is how Bookinfo knows jason.
var endUser = http.Header{"End-User": {"jason"}}

// shares holds when the versions have the parts they should, and no other has
// any.
func shares(parts map[string]float64) func(*Traffic) (string, string) {
	return func(t *Traffic) (did, wrong string) {
		known := 0
		for v, part := range parts {
			wrong = firstOf(wrong, t.share(v, part))
			known += t.count(from(v))
		}
		return t.tally(version), firstOf(wrong, t.equal("answers from these versions", known, Requests))
	}
}

// always holds when every service answers in the version, or with the status.
func always(v string) func(*Traffic) (string, string) {
	return func(t *Traffic) (string, string) {
		return t.tally(answered), t.all(v, func(a *Answer) bool { return version(a) == v })
	}
}

func answered(a *Answer) string { return a.Service + " " + version(a) }

func weights(rule string, parts map[string]float64) Row {
	return Row{
		Rules: []string{subsets, rule}, Should: fmt.Sprintf("of reviews %v", parts),
		Ask: get("reviews"), Did: shares(parts),
	}
}

// database is a rule for reviews v3 with a version of ratings.
func database(rule, ratings string) Row {
	return Row{
		Rules: []string{subsets, rule}, Should: "v3 of reviews and " + ratings + " of ratings",
		Ask: each("reviews", "ratings"),
		Did: func(t *Traffic) (string, string) {
			return t.tally(answered), t.all("as they should be", func(a *Answer) bool {
				return version(a) == map[string]string{"reviews": "v3", "ratings": ratings}[a.Service]
			})
		},
	}
}
