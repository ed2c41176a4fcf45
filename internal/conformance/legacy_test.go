package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/schema"
)

// Each object is valid today, and says what it said then.
func TestReadObject(t *testing.T) {
	for _, test := range []struct{ name, kind, old, spec string }{
		{"external service", "ExternalService",
			`{hosts: [a.example], ports: [{number: 80, name: http, protocol: http}], discovery: DNS}`,
			`{hosts: [a.example], ports: [{number: 80, name: http, protocol: http}], resolution: DNS, location: MESH_EXTERNAL}`},
		{"selector", "Gateway",
			`{selector: {my_app: x}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.example]}]}`,
			`{selector: {my_app: x}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.example]}]}`},
		{"destination rule", "DestinationRule",
			`{name: a, traffic_policy: {load_balancer: {simple: LEAST_CONN}},
				subsets: [{name: v1, labels: {my_label: x}, trafficPolicy: {outlierDetection: {http: {consecutive_errors: 3, interval: 5s}}}}]}`,
			`{host: a, trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}},
				subsets: [{name: v1, labels: {my_label: x}, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 3, interval: 5s}}}]}`},
		{"destinations", "VirtualService",
			`{hosts: [a], http: [{route: [{destination: {name: b, subset: v1, port: {name: http}}}], mirror: {name: c}}]}`,
			`{hosts: [a], http: [{route: [{destination: {host: b, subset: v1}}], mirror: {host: c}}]}`},
		{"faults", "VirtualService",
			`{hosts: [a], http: [{route: [{destination: {name: b}}],
				fault: {delay: {percent: 0, fixed_delay: 5s}, abort: {percent: 50, http_status: 503}}}]}`,
			`{hosts: [a], http: [{route: [{destination: {host: b}}],
				fault: {delay: {fixedDelay: 5s}, abort: {percentage: {value: 50}, httpStatus: 503}}}]}`},
		{"headers and origins", "VirtualService",
			`{hosts: [a], http: [{route: [{destination: {name: b}}],
				appendHeaders: {x_y: z}, corsPolicy: {allow_origin: ["http://foo.example"], max_age: 300s}}]}`,
			`{hosts: [a], http: [{route: [{destination: {host: b}}],
				headers: {request: {add: {x_y: z}}}, corsPolicy: {allowOrigins: [{exact: "http://foo.example"}], maxAge: 300s}}]}`},
		{"v1alpha2", "RouteRule",
			`{destination: {name: a}, match: {source: {name: b, labels: {my_label: x}}, request: {headers: {x_y: {exact: z}}}}, websocket_upgrade: true}`,
			`{destination: {name: a}, match: {source: {name: b, labels: {my_label: x}}, request: {headers: {x_y: {exact: z}}}}, websocketUpgrade: true}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			obj, refused := readText(t, test.kind, test.old)
			if refused != nil {
				t.Fatal(refused)
			}
			if diff := cmp.Diff(value(t, test.spec), value(t, string(obj.SpecJSON()))); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if obj.Meta.Namespace != "here" {
				t.Errorf("in namespace %s", obj.Meta.Namespace)
			}
		})
	}
}

func TestWebsocketRoutesAreNamed(t *testing.T) {
	obj, refused := readText(t, "VirtualService",
		`{hosts: [a], http: [{match: [{uri: {prefix: /ws}}], route: [{destination: {name: b}}], websocket_upgrade: true}]}`)
	if got := obj.Meta.Annotations["pilot-api/websocket-routes"]; refused != nil || got != "websocket-0" {
		t.Errorf("annotation %q, refused %v", got, refused)
	}
}

// What validation refuses is stored as from older times.
func TestRefusedObject(t *testing.T) {
	obj, refused := readText(t, "ExternalService",
		`{hosts: [172.217.0.0/16], ports: [{number: 444, name: tcp, protocol: tcp}]}`)
	if obj == nil || refused == nil {
		t.Errorf("object %v, refused %v", obj, refused)
	}
}

// readText reads an object named x of namespace here.
func readText(t *testing.T, kind, spec string) (obj *schema.Object, refused error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object.yaml")
	text := "kind: " + kind + "\nmetadata: {name: x}\nspec:\n  " + spec
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, refused, err := readObjects(file, "here")
	if err != nil {
		t.Fatal(err)
	}
	return objects[0], refused
}

func value(t *testing.T, text string) (v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
