package discovery_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/discovery"
)

func TestRegistrationsAreOfTheMeshSorted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(
			object(t, "ServiceEntry", "web", `{"hosts":["web.example"],"location":"MESH_INTERNAL","resolution":"STATIC",`+
				`"ports":[{"number":90,"name":"tcp","protocol":"TCP"},{"number":80,"name":"http","protocol":"HTTP"}],`+
				`"endpoints":[{"address":"10.1.0.2","locality":"zone"},{"address":"10.1.0.1"}]}`),
			service(t, "a.example", "10.1.0.3"),
			object(t, "ServiceEntry", "found", `{"hosts":["found.example"],"location":"MESH_INTERNAL","resolution":"DNS",`+
				`"ports":[{"number":80,"name":"http","protocol":"HTTP"}]}`),
			object(t, "ServiceEntry", "outside", `{"hosts":["outside.example"],"location":"MESH_EXTERNAL","resolution":"STATIC",`+
				`"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"10.1.0.4"}]}`),
		)
		s := follow(t, src, discovery.Options{})
		got, err := s.V1Registrations()
		if err != nil {
			t.Fatal(err)
		}
		want := `[{"service-key":"a.example|http","hosts":[{"ip_address":"10.1.0.3","port":8080}]},` +
			`{"service-key":"web.example|http","hosts":[{"ip_address":"10.1.0.2","port":80,"tags":{"az":"zone"}},{"ip_address":"10.1.0.1","port":80}]},` +
			`{"service-key":"web.example|tcp","hosts":[{"ip_address":"10.1.0.2","port":90,"tags":{"az":"zone"}},{"ip_address":"10.1.0.1","port":90}]}]` + "\n"
		if diff := cmp.Diff(want, string(got.Body)); diff != "" {
			t.Errorf("registrations (-want +got):\n%s", diff)
		}
	})
}

func TestNoRegistrationsAreAnEmptyList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(), discovery.Options{})
		if got, err := s.V1Registrations(); err != nil || string(got.Body) != "[]\n" {
			t.Errorf("got %q, %v", got.Body, err)
		}
	})
}

func TestZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(
			object(t, "ServiceEntry", "web", `{"hosts":["web.example"],"location":"MESH_INTERNAL","resolution":"STATIC",`+
				`"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"10.1.0.1","locality":"region/zone"},{"address":"10.1.0.2"}]}`),
		), discovery.Options{})
		for _, c := range []struct{ node, zone, err string }{
			{node: nodeWeb, zone: "region/zone"},
			{node: "sidecar~10.1.0.2~x~domain", zone: ""},
			{node: nodeA, err: "couldn't find the given cluster node"},
			{node: "router~10.1.0.1~x~domain", err: "couldn't find the given cluster node"},
			{node: "nobody", err: `bad node: node "nobody": want four parts joined by ~, role~ip~id~domain, found 1`},
		} {
			zone, err := s.Zone(c.node)
			if zone != c.zone || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("%s: %q, %v; want %q, %s", c.node, zone, err, c.zone, c.err)
			}
		}
	})
}

// Before the first snapshot, whoever asks is told why there is none.
func TestUnreadableSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects()
		src.synced, src.err = false, errors.New("bang")
		s := follow(t, src, discovery.Options{})
		_, clusters := s.V1Clusters(nodeA)
		_, endpoints := s.V1Endpoints("web.example|http")
		_, all := s.V1Registrations()
		for _, err := range []error{clusters, endpoints, all} {
			if !errors.Is(err, discovery.ErrNotReady) || !errors.Is(err, src.err) {
				t.Errorf("got %v, want ErrNotReady and why", err)
			}
		}
		if _, err := s.Zone(nodeA); err != src.err {
			t.Errorf("zone: got %v, want the bare %v", err, src.err)
		}

		src.set(service(t, "web.example", "10.1.0.1"))
		synctest.Wait()
		if _, err := s.V1Registrations(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
