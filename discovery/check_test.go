package discovery_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

func after(objects ...*schema.Object) (out []schema.Change) {
	for _, o := range objects {
		out = append(out, schema.Change{After: o})
	}
	return out
}

// codesOf are those of what is found wrong with some objects.
func codesOf(t testing.TB, s *discovery.Publisher, w discovery.Written) (codes []string) {
	t.Helper()
	problems, ok := s.Check(t.Context(), w)
	if !ok {
		t.Fatal("not checked")
	}
	for _, p := range problems {
		codes = append(codes, p.Object.Name+" "+string(p.Code))
	}
	slices.Sort(codes)
	return codes
}

// TestCheck is of writes that the source has not heard of yet, and of some that it
// never will.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(service(t, "web.example", "10.1.0.1"))
		s := follow(t, src, discovery.Options{CheckPatience: time.Hour})
		one, other := timeout(t, "one.example", 1), service(t, "one.example", "10.1.0.2")
		for _, step := range []struct {
			name    string
			written discovery.Written
			want    []string
		}{
			{"one alone", discovery.Written{Changes: after(one)}, []string{"timeout PA0101"}},
			{"with what it needs", discovery.Written{Changes: after(one, other)}, nil},
			{"each state by itself", discovery.Written{Changes: after(one)}, []string{"timeout PA0101"}},
			{"for a try", discovery.Written{Changes: after(other), DryRun: true}, nil},
			{"after a try", discovery.Written{Changes: after(one)}, []string{"timeout PA0101"}},
			{"without what it needs", discovery.Written{Changes: append(after(timeout(t, "web.example", 2)), schema.Change{Before: src.all[0]})}, []string{"timeout PA0101"}},
			{"of what is there", discovery.Written{Changes: after(timeout(t, "web.example", 2))}, nil},
		} {
			if got := codesOf(t, s, step.written); !slices.Equal(got, step.want) {
				t.Errorf("%s: %q, want %q", step.name, got, step.want)
			}
		}
		src.set(append(src.all, other)...)
		if got := codesOf(t, s, discovery.Written{Changes: after(one)}); got != nil {
			t.Errorf("the source has the host by now: %q", got)
		}
		if problems := s.Report().Problems; len(problems) > 0 {
			t.Errorf("what was looked at is published: %v", problems)
		}
	})
}

// TestCheckGoesByEarlierWrites also where the source has not heard of them.
func TestCheckGoesByEarlierWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects()
		s := follow(t, src, discovery.Options{CheckPatience: time.Hour})
		host, rule := at(t, service(t, "one.example", "10.1.0.2"), 11), at(t, timeout(t, "one.example", 1), 12)
		gone := schema.Change{Before: at(t, host, 13)}
		for _, step := range []struct {
			name    string
			written discovery.Written
			want    []string
		}{
			{"the host", discovery.Written{Changes: after(host)}, nil},
			{"a try", discovery.Written{Changes: append(after(rule), gone), DryRun: true}, []string{"timeout PA0101"}},
			{"the rule", discovery.Written{Changes: after(rule)}, nil},
			{"no host", discovery.Written{Changes: []schema.Change{gone}}, nil},
			{"the rule again", discovery.Written{Changes: after(at(t, rule, 14))}, []string{"timeout PA0101"}},
			{"the host, told late", discovery.Written{Changes: after(host)}, nil},
			{"the rule once more", discovery.Written{Changes: after(at(t, rule, 15))}, []string{"timeout PA0101"}},
		} {
			if got := codesOf(t, s, step.written); !slices.Equal(got, step.want) {
				t.Errorf("%s: %q, want %q", step.name, got, step.want)
			}
		}
		src.set(host)
		src.goOn(100)
		if got := codesOf(t, s, discovery.Written{Changes: after(at(t, rule, 101))}); got != nil {
			t.Errorf("the source knows better: %q", got)
		}
	})
}

// at is the object as it is stored at a revision.
func at(t *testing.T, o *schema.Object, revision int) *schema.Object {
	t.Helper()
	meta := o.Meta
	meta.ResourceVersion = strconv.Itoa(revision)
	stored, err := schema.New(o.Kind, meta, o.SpecJSON())
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// TestCheckWithoutObjects: nobody waits for a source that has nothing yet.
func TestCheckWithoutObjects(t *testing.T) {
	src := newObjects()
	src.synced = false
	s := discovery.New(discovery.Options{Source: src})
	if problems, ok := s.Check(t.Context(), discovery.Written{Changes: after(timeout(t, "one.example", 1))}); ok {
		t.Errorf("checked: %v", problems)
	}
}

// TestCheckIsNotWaitedFor: a compiler that does not come back keeps nobody from
// writing, and one that panics is replaced.
func TestCheckIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faults{}
		s := followWith(t, newObjects(), discovery.Options{}, f)
		rule := discovery.Written{Changes: after(timeout(t, "one.example", 1))}
		stuck := make(chan struct{})
		f.advance = func(*mesh.Snapshot) { <-stuck }
		for range 3 {
			if _, ok := s.Check(t.Context(), rule); ok {
				t.Fatal("checked by a compiler that is stuck")
			}
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, ok := s.Check(gone, rule); ok {
			t.Fatal("checked for one that is gone")
		}
		close(stuck)
		synctest.Wait()
		f.advance = func(*mesh.Snapshot) { panic("in a test") }
		if _, ok := s.Check(t.Context(), rule); ok {
			t.Fatal("checked by a compiler that panics")
		}
		f.advance = nil
		time.Sleep(time.Hour) // The first one is owed for.
		if got := codesOf(t, s, rule); len(got) != 1 {
			t.Errorf("%q", got)
		}
	})
}

// TestNobodyWaitsForLargeObjectsOfOthers: a write that comes while a check looks at a
// large object is not checked, nor is the one whose check comes upon a large object
// that somebody else wrote, nor one that waits when such a check begins. The next one is.
func TestNobodyWaitsForLargeObjectsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, src := &faults{}, newObjects()
		s := followWith(t, src, discovery.Options{CheckPatience: time.Hour}, f)
		small := discovery.Written{Changes: after(timeout(t, "one.example", 1))}
		if got := codesOf(t, s, small); len(got) != 1 {
			t.Fatalf("%q", got)
		}
		ports := make([]string, 200)
		for i := range ports {
			ports[i] = fmt.Sprintf(`{"number":%d,"name":"p%d","protocol":"HTTP"}`, 1000+i, i)
		}
		large := func(revision int) *schema.Object {
			return at(t, object(t, "ServiceEntry", "large", fmt.Sprintf(`{"hosts":["large.example"],"resolution":"STATIC","ports":[%s],"endpoints":[{"address":"10.0.0.1"}]}`, strings.Join(ports, ","))), revision)
		}
		slow := make(chan struct{})
		f.advance = func(*mesh.Snapshot) { <-slow }
		for _, step := range []struct {
			name  string
			begin func() (ok bool)
			want  bool
		}{
			{"a large object of others", func() bool { src.set(large(11)); _, ok := s.Check(t.Context(), small); return ok }, false},
			{"a large object of its own", func() bool { _, ok := s.Check(t.Context(), discovery.Written{Changes: after(large(12))}); return ok }, true},
		} {
			began := make(chan bool, 1)
			go func() { began <- step.begin() }()
			synctest.Wait()
			if _, ok := s.Check(t.Context(), small); ok {
				t.Errorf("%s: another one is checked", step.name)
			}
			slow <- struct{}{} // The check goes on.
			if got := <-began; got != step.want {
				t.Errorf("%s: checked is %v, want %v", step.name, got, step.want)
			}
			synctest.Wait()
		}
		// Three writes in line: the second has a large object, and the third waits behind it.
		var line [3]chan bool
		for i, w := range []discovery.Written{small, {Changes: after(large(13))}, small} {
			line[i] = make(chan bool, 1)
			go func() {
				_, ok := s.Check(t.Context(), w)
				line[i] <- ok
			}()
			synctest.Wait()
		}
		start := time.Now()
		slow <- struct{}{} // The first check ends, and the second begins.
		if ok := <-line[2]; ok || time.Since(start) > 0 {
			t.Errorf("a write in line behind a large object waited for %v, and is checked: %v", time.Since(start), ok)
		}
		close(slow)
		if first, second := <-line[0], <-line[1]; !first || !second {
			t.Errorf("in line: the first is checked: %v, the second: %v", first, second)
		}
		synctest.Wait()
		if got := codesOf(t, s, small); len(got) != 1 {
			t.Errorf("afterwards: %q", got)
		}
	})
}

// TestCheckIsAsFromScratch: whatever is written and tried before, and whatever of it
// the source has heard.
func TestCheckIsAsFromScratch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hosts := []string{"a.example", "b.example"}
		draw := func(name string) *schema.Object {
			host := rapid.SampledFrom(hosts).Draw(rt, name)
			switch rapid.IntRange(0, 2).Draw(rt, name) {
			case 0:
				return service(t, host, "10.1.0.1")
			case 1:
				return object(t, "RouteRule", host, fmt.Sprintf(`{"destination":{"service":%q},"precedence":%d}`, host, rapid.IntRange(1, 2).Draw(rt, "precedence")))
			}
			return object(t, "VirtualService", host, fmt.Sprintf(`{"hosts":[%q],"http":[{"route":[{"destination":{"host":%q,"subset":"v1"}}]}]}`,
				host, rapid.SampledFrom(hosts).Draw(rt, "to")))
		}
		src := newObjects()
		s := discovery.New(discovery.Options{Source: src, Settings: settings(), CheckPatience: time.Hour})
		for range 12 {
			has := map[schema.Key]*schema.Object{}
			for _, o := range src.all {
				has[o.Key()] = o
			}
			for range rapid.IntRange(0, 2).Draw(rt, "heard") {
				o := draw("source")
				if has[o.Key()] != nil && rapid.Bool().Draw(rt, "gone") {
					delete(has, o.Key())
				} else {
					has[o.Key()] = o
				}
			}
			var all []*schema.Object
			for _, o := range has {
				all = append(all, o)
			}
			if src.set(all...); rapid.IntRange(0, 5).Draw(rt, "relist") == 0 {
				src.relist(t)
			}
			w := discovery.Written{DryRun: rapid.Bool().Draw(rt, "dry run")}
			asked := map[diag.Ref]bool{}
			for range rapid.IntRange(1, 3).Draw(rt, "written") {
				o := draw("written")
				if asked[o.Key().Ref()] {
					continue
				}
				if has[o.Key()] != nil && rapid.Bool().Draw(rt, "delete") {
					w.Changes = append(w.Changes, schema.Change{Before: has[o.Key()]})
					delete(has, o.Key())
					continue
				}
				w.Changes, has[o.Key()], asked[o.Key().Ref()] = append(w.Changes, schema.Change{After: o}), o, true
			}
			got := s.CheckNow(w)
			if want := problemsOf(has, asked); !slices.Equal(byObject(got), byObject(want)) {
				rt.Fatalf("of %v:\n%v\nwant\n%v", asked, got, want)
			}
		}
	})
}

// byObject does not tell which of two objects is spoken of first.
func byObject(l diag.List) diag.List {
	slices.SortStableFunc(l, func(a, b diag.Problem) int { return strings.Compare(a.Object.String(), b.Object.String()) })
	return l
}

// problemsOf are those of some objects among all, found by who knows nothing.
func problemsOf(all map[schema.Key]*schema.Object, asked map[diag.Ref]bool) diag.List {
	var objects []*schema.Object
	for _, o := range all {
		objects = append(objects, o)
	}
	snapshot := mesh.NewSnapshot(1, settings(), objects)
	c := compile.NewCompiler()
	c.Advance(snapshot)
	return slices.DeleteFunc(slices.Concat(snapshot.Problems, c.Problems()), func(p diag.Problem) bool { return !asked[p.Object] })
}

// BenchmarkCheck is what a write of one of so many services' rules costs beside the
// write, where proxies of so many namespaces ask in v1.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []struct{ services, v1 int }{{100, 0}, {1000, 0}, {10_000, 0}, {100, 1}, {1000, 1}, {10_000, 1}, {1000, 8}} {
		b.Run(fmt.Sprintf("services=%d/v1=%d", size.services, size.v1), func(b *testing.B) {
			l := newLarge(b, size.services, 8, 0, plain)
			for i := range size.v1 {
				pollsV1(b, l.s, fmt.Sprintf("sidecar~10.9.0.%d~a.x~space-%d.svc.cluster.local", i, i))
			}
			l.s.CheckNow(discovery.Written{Changes: after(route(b, 1, 1))})
			writes := make([]discovery.Written, 100)
			for i := range writes {
				writes[i].Changes = after(route(b, i, 9))
			}
			b.ReportAllocs()
			before := cpuTime(b)
			for i := 0; b.Loop(); i++ {
				l.s.CheckNow(writes[i%len(writes)])
			}
			b.ReportMetric(float64(cpuTime(b)-before)/1e3/float64(b.N), "cpu-us/op")
		})
	}
}
