package diag_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/diag"
)

// TestStringIsOneLineForATerminal: what a file says cannot move the cursor,
// colour the screen or look like another line.
func TestStringIsOneLineForATerminal(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    diag.Problem
		want string
	}{
		{"plain", diag.Problem{
			Object: diag.Ref{Kind: "RouteRule", Namespace: "default", Name: "x"}, Field: "spec.route[0].weight",
			Message: "must be from 0 to 100", Value: "101", Position: &diag.Position{File: "a.yaml", Line: 3, Column: 5},
		}, "a.yaml:3:5: RouteRule default/x: spec.route[0].weight: must be from 0 to 100, found 101"},
		{"colour", diag.Problem{Object: diag.Ref{Kind: "RouteRule", Name: "a\x1b[31mb"}, Message: "m"}, `RouteRule a\x1b[31mb: m`},
		{"nul and new line", diag.Problem{Field: "a\x00b", Message: "m\nerror: n"}, `a\x00b: m\nerror: n`},
		{"right to left", diag.Problem{Message: "m", Value: "\"a\u202eb\""}, `m, found "a\u202eb"`},
		{"no text", diag.Problem{Message: "a\xffb"}, `a\xffb`},
		{"letters of the world", diag.Problem{Message: "… größer 世"}, "… größer 世"},
	} {
		if got := tc.p.String(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if got, want := (diag.Ref{Kind: "RouteRule", Name: "\x1b"}).String(), `RouteRule \x1b`; got != want {
		t.Errorf("ref %q, want %q", got, want)
	}
}

// TestMerge: what was met elsewhere counts as what was met here, so that of an
// object no more are kept, and one note tells of the others.
func TestMerge(t *testing.T) {
	ref := diag.Ref{Kind: "RouteRule", Name: "many"}
	many := func(n int) *diag.Collector {
		var c diag.Collector
		for i := range n {
			c.Add(diag.Problem{Object: ref, Message: fmt.Sprint(i)})
		}
		return &c
	}
	both := many(diag.MaxPerObject + 3)
	both.Merge(many(diag.MaxPerObject + 4))
	list := both.List()
	want := fmt.Sprintf("%d more problems of the object are not listed", diag.MaxPerObject+7)
	if len(list) != diag.MaxPerObject+1 || list[diag.MaxPerObject].Message != want {
		t.Errorf("%d problems, the last %q", len(list), list[len(list)-1].Message)
	}
	if !many(5).Equal(many(5)) || many(5).Equal(many(6)) || many(diag.MaxPerObject+1).Equal(many(diag.MaxPerObject+2)) {
		t.Error("equal is not equal")
	}
}

// TestFurtherCodes: what is wrong with an object beside a hundred things of another kind
// is told.
func TestFurtherCodes(t *testing.T) {
	var c diag.Collector
	for range diag.MaxPerObject + 1 {
		c.Add(diag.Problem{Code: diag.Closed})
	}
	c.Add(diag.Problem{Code: diag.OverBudget}, diag.Problem{Code: diag.OverBudget})
	list := c.List()
	if n := len(list); n != diag.MaxPerObject+2 || list[n-2].Code != diag.OverBudget || !strings.HasPrefix(list[n-1].Message, "2 more") {
		t.Errorf("got %d problems, the last two are %v", n, list[n-2:])
	}
}

// TestMessages: codes are in order, none is there twice, and all say something.
func TestMessages(t *testing.T) {
	before := diag.Message{}
	names := map[string]bool{}
	for _, m := range diag.Messages {
		if m.Code <= before.Code || !regexp.MustCompile(`^PA\d{4}$`).MatchString(string(m.Code)) {
			t.Errorf("%s comes after %s", m.Code, before.Code)
		}
		if names[m.Name] || !regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`).MatchString(m.Name) || !strings.HasSuffix(m.About, ".") {
			t.Errorf("%+v", m)
		}
		if found, ok := m.Code.Message(); !ok || found != m {
			t.Errorf("%s: %+v", m.Code, found)
		}
		names[m.Name], before = true, m
	}
	if _, ok := diag.Code("PA9999").Message(); ok {
		t.Error("a code that there is not stands for something")
	}
}

// TestCollectorIsAList: however problems come, alone or from other collectors, the
// first hundred of each object are there in order, the first of each further code, and
// one word of the others.
func TestCollectorIsAList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var parts [3]diag.Collector
		var all, ofOne diag.Collector
		var told []diag.Problem
		var want []string
		found, kept, coded := map[string]int{}, map[string]int{}, map[string]bool{}
		for i := range parts {
			for range rapid.IntRange(0, 4).Draw(rt, "adds") {
				object := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "object")
				problems := make([]diag.Problem, rapid.IntRange(0, 60).Draw(rt, "problems"))
				for j := range problems {
					code := rapid.SampledFrom([]diag.Code{diag.Closed, diag.Closed, diag.Closed, diag.UnknownHost, diag.OverBudget}).Draw(rt, "code")
					problems[j] = diag.Problem{Object: diag.Ref{Name: object}, Code: code, Message: fmt.Sprint(len(told))}
					told = append(told, problems[j])
				}
				parts[i].Add(problems...)
			}
			all.Merge(parts[i].Found())
			ofOne.MergeOf(parts[i].Found(), map[diag.Ref]bool{{Name: "a"}: true})
		}
		for _, p := range told {
			object, code := p.Object.Name, p.Object.Name+string(p.Code)
			if found[object]++; found[object] <= diag.MaxPerObject || !coded[code] {
				kept[object]++
				want = append(want, p.Message)
			}
			coded[code] = true
		}
		isOther := func(p diag.Problem) bool { return p.Object.Name != "a" }
		if got, want := ofOne.List(), slices.DeleteFunc(all.List(), isOther); !slices.Equal(got, want) {
			rt.Fatalf("of one object there is %v, want %v", got, want)
		}
		got, left := []string{}, map[string]string{}
		for _, p := range all.List() {
			if strings.HasSuffix(p.Message, "not listed") {
				left[p.Object.Name] = strings.Fields(p.Message)[0]
			} else {
				got = append(got, p.Message)
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("got %v, want %v", got, want)
		}
		for object, n := range found {
			if more := n - kept[object]; more > 0 && left[object] != fmt.Sprint(more) || more <= 0 && left[object] != "" {
				rt.Errorf("%s has %d problems, %q are said to be left out", object, n, left[object])
			}
		}
	})
}
