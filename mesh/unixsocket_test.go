package mesh_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

// TestSocketsThatAreEndpoints: only a socket in a folder of the settings is one, however
// its path is written.
func TestSocketsThatAreEndpoints(t *testing.T) {
	const none, folder, data = "found none", "unixSocketFolders", "data folder"
	for _, test := range []struct {
		folders       []string
		private       []string
		address, want string
	}{
		{nil, nil, "unix:///run/app/a.sock", none},
		{nil, nil, "unix://@a", "abstract"},
		{[]string{"/run/app"}, nil, "unix:///run/app/a.sock", ""},
		{[]string{"/run/app"}, nil, "unix:///run/app/deeper/a.sock", ""},
		{[]string{"/srv", "/run/app"}, nil, "unix:///run/app/a.sock", ""},
		{[]string{"/run/app/"}, nil, "unix:///run//app/./a.sock", ""},
		{[]string{"/run/app"}, nil, "unix:///run/app/..a", ""},
		{[]string{"/run/app"}, nil, "unix:///run/app", folder},
		{[]string{"/run/app"}, nil, "unix:///run/app/", ".."},
		{[]string{"/run/app"}, nil, "unix:///run/app/.", folder},
		{[]string{"/run/app"}, nil, "unix:///run/application/a.sock", folder},
		{[]string{"/run/app"}, nil, "unix:///run/a.sock", folder},
		{[]string{"/run/app"}, nil, "unix:///RUN/app/a.sock", folder},
		{[]string{"/run/app"}, nil, "unix:///run/app/../data/a.sock", ".."},
		{[]string{"/run/app"}, nil, "unix:///run/app/b/../a.sock", ".."},
		{[]string{"/run/app"}, nil, "unix:///run/app/..", ".."},
		{[]string{"/run/app"}, nil, "unix://run/app/a.sock", "absolute"},
		{[]string{"/run/app"}, nil, "unix://./run/app/a.sock", "absolute"},
		{[]string{"/run/app"}, nil, "unix://", "absolute"},
		{[]string{"/run/app"}, nil, "unix://@/run/app/a.sock", "abstract"},
		{[]string{"/run/app"}, []string{"/data"}, "unix:///run/app/a.sock", ""},
		{[]string{"/run/app"}, []string{"/run/app/data"}, "unix:///run/app/data/http.sock", data},
		{[]string{"/run/app"}, []string{"/run/app/data"}, "unix:///run/app//./data/http.sock", data},
		{[]string{"/run/app"}, []string{"/run/app/data"}, "unix:///run/app/database/a.sock", ""},
		{[]string{"/run/app/data"}, []string{"/run/app/data/"}, "unix:///run/app/data/http.sock", data},
		{[]string{"/run/app/data/deep"}, []string{"/run/app/data"}, "unix:///run/app/data/deep/a.sock", data},
		{[]string{"/run"}, []string{"/link", "/run/data"}, "unix:///run/data/pilot-api.sock", data},
		{nil, []string{"/data"}, "unix:///data/http.sock", data},
	} {
		settings := &mesh.Settings{UnixSocketFolders: test.folders, PrivateFolders: test.private}
		got := settings.RefusesSocket(test.address)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s with %q, data in %q: want %q, found %q", test.address, test.folders, test.private, test.want, got)
		}
	}
}

// TestSocketsOfObjects: what is no endpoint is left out, written inline or picked, and
// its object says which setting would allow it.
func TestSocketsOfObjects(t *testing.T) {
	objs := objects(t, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: inline}
spec:
  hosts: [inline.example]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: "unix:///data/http.sock"}, {address: "unix:///run/app/a.sock"}, {address: "unix://@a"}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: picking}
spec:
  hosts: [picking.example]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: a}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: w}
spec: {address: "unix:///data/pilot-api.sock", labels: {app: a}}
`)
	for _, test := range []struct {
		folders []string
		want    []string
		left    string
	}{
		{nil, []string{"spec.endpoints[0].address", "spec.endpoints[1].address", "spec.endpoints[2].address", "WorkloadEntry default/w: spec.address"}, "[]"},
		{[]string{"/run/app", "/data"}, []string{"spec.endpoints[0].address", "spec.endpoints[2].address", "WorkloadEntry default/w: spec.address"}, "[unix:///run/app/a.sock]"},
	} {
		settings := mesh.DefaultSettings()
		settings.UnixSocketFolders, settings.PrivateFolders = test.folders, []string{"/data"}
		s := mesh.NewSnapshot(1, settings, objs)
		left := []string{}
		for _, host := range []string{"inline.example", "picking.example"} {
			for _, i := range s.Service(host).Instances {
				left = append(left, i.Address)
			}
		}
		if got := fmt.Sprint(left); got != test.left {
			t.Errorf("with %q the endpoints are %s, want %s", test.folders, got, test.left)
		}
		wantProblems(t, s, test.want...)
	}
}
