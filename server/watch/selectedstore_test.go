package watch_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// selectedStore is the state of a client that follows a selection by watches, which
// are cut off at arbitrary places.
type selectedStore struct {
	w        *servertest.World
	query    string
	watch    *servertest.Watching
	revision string
	objects  map[string]bool
}

// take reads one event, and reports an error if it does not follow from the state.
func (s *selectedStore) take() {
	s.w.Helper()
	if s.watch == nil {
		s.watch = s.w.Watch(s.query + "&resourceVersion=" + s.revision)
	}
	f, ok := s.watch.Next()
	if !ok {
		s.w.Fatal("the watch ended")
	}
	kind, name, _ := strings.Cut(f.String(), " ")
	if s.objects[name] != (kind != "ADDED") {
		s.w.Errorf("%s: told %s, known was %v", s.query, f, s.objects[name])
	}
	s.objects[name] = kind != "DELETED"
	var o servertest.Object
	if err := json.Unmarshal(f.Object, &o); err != nil {
		s.w.Fatal(err)
	}
	s.revision = o.Metadata.ResourceVersion
}

func (s *selectedStore) cut() {
	if s.watch != nil {
		s.watch.Stop()
		s.watch = nil
	}
}

func (s *selectedStore) names() []string {
	names := []string{}
	for name, is := range s.objects {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestSelectedStoreEqualsList checks that the state which follows from the events
// is the list of the selected objects, whatever happens to objects and wherever
// watches break.
func TestSelectedStoreEqualsList(t *testing.T) {
	w := servertest.Start(t)
	random := rand.New(rand.NewPCG(1, 2))
	selectors := []url.Values{
		{"labelSelector": {"team in (red,blue)"}},
		{"labelSelector": {"team!=red"}},
		{"fieldSelector": {"spec.destination.name=reviews"}},
		{"fieldSelector": {"spec.destination.name!=reviews"}, "labelSelector": {"team"}},
	}
	begin := w.Page("").Metadata.ResourceVersion
	for range 200 {
		shake(w, random)
	}
	w.Want(http.StatusCreated, "POST", servertest.RulesPath, servertest.Rule("last", 1, "labels: {team: blue}"), servertest.AsYAML)
	w.Want(http.StatusCreated, "POST", servertest.RulesPath, strings.Replace(servertest.Rule("other", 1, "labels: {team: blue}"), "name: reviews", "name: ratings", 1), servertest.AsYAML)
	for _, selector := range selectors {
		store := &selectedStore{w: w, query: "&" + selector.Encode(), revision: begin, objects: map[string]bool{}}
		last := "last"
		if strings.Contains(store.query, "%21%3Dreviews") {
			last = "other"
		}
		for !store.objects[last] {
			store.take()
			if random.IntN(4) == 0 {
				store.cut()
			}
		}
		store.cut()
		got := slices.DeleteFunc(store.names(), func(name string) bool { return name == "other" })
		want := slices.DeleteFunc(w.Page(selector.Encode()).Names(), func(name string) bool { return name == "other" })
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%v: the store has %v, the list %v", selector, got, want)
		}
	}
}

// shake creates, changes or deletes one of a few rules.
func shake(w *servertest.World, random *rand.Rand) {
	w.Helper()
	name := fmt.Sprintf("r%d", random.IntN(4))
	labels := []string{"labels: {team: red}", "labels: {team: blue}", "labels: {team: green}", "labels: {}"}[random.IntN(4)]
	text := servertest.Rule(name, random.IntN(100), labels)
	if random.IntN(2) == 0 {
		text = strings.Replace(text, "name: reviews", "name: ratings", 1)
	}
	switch random.IntN(5) {
	case 0:
		w.Do("DELETE", servertest.RulesPath+"/"+name, "")
	case 1:
		w.Do("POST", servertest.RulesPath, text, servertest.AsYAML)
	default:
		w.Do("PUT", servertest.RulesPath+"/"+name, text, servertest.AsYAML)
	}
}
