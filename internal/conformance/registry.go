package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// registry is registry.yaml: the services of Pilot's platform, and where its config
// objects were.
type registry struct {
	Services        []service
	ManagementPorts []port
	ConfigDefaults  struct{ Namespace, Domain string }
}

type service struct {
	Hostname, Address string
	ExternalName      string // an alias of an external name
	Ports             []port
	Instances         []instance
}

type port struct {
	Name     string `json:"name"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
}

// instance is one port of one workload.
type instance struct {
	IP, ServicePortName string
	Port                int
	Labels              map[string]string
	AZ                  string
}

// endpoint is all ports of one workload, as in a ServiceEntry.
type endpoint struct {
	Address  string            `json:"address"`
	Labels   map[string]string `json:"labels,omitempty"`
	Locality string            `json:"locality,omitempty"`
	Ports    map[string]int    `json:"ports"`
}

// objects returns the services as ServiceEntries.
func (r *registry) objects() ([]*schema.Object, error) {
	var out []*schema.Object
	for _, s := range r.Services {
		obj, err := s.entry(r.namespace(s.Hostname))
		if err != nil {
			return nil, fmt.Errorf("registry.yaml: %s: %w", s.Hostname, err)
		}
		out = append(out, obj)
	}
	return out, nil
}

// namespace returns the second part of a host NAME.NAMESPACE.svc.DOMAIN.
func (r *registry) namespace(host string) string {
	inside, ok := strings.CutSuffix(host, ".svc."+r.ConfigDefaults.Domain)
	if _, namespace, dotted := strings.Cut(inside, "."); ok && dotted {
		return namespace
	}
	return r.ConfigDefaults.Namespace
}

// entry returns the service as a ServiceEntry. A service with an external name has no
// instances: proxies look up its host.
func (s *service) entry(namespace string) (*schema.Object, error) {
	ports := make([]map[string]any, len(s.Ports))
	for i, p := range s.Ports {
		ports[i] = map[string]any{"name": p.Name, "number": p.Port, "protocol": p.Protocol}
	}
	spec := map[string]any{"hosts": []string{s.Hostname}, "location": "MESH_INTERNAL", "ports": ports, "resolution": "DNS"}
	if s.Address != "" {
		spec["addresses"] = []string{s.Address}
	}
	if s.ExternalName == "" {
		endpoints, err := s.endpoints()
		if err != nil {
			return nil, err
		}
		spec["resolution"], spec["endpoints"] = "STATIC", endpoints
	}
	return validObject("ServiceEntry", metav1.ObjectMeta{Name: s.Hostname, Namespace: namespace}, spec)
}

// endpoints groups the instances by workload, in registry order.
func (s *service) endpoints() ([]*endpoint, error) {
	var out []*endpoint
	for _, i := range s.Instances {
		at := slices.IndexFunc(out, i.sameWorkload)
		if at < 0 {
			at = len(out)
			out = append(out, &endpoint{Address: i.IP, Labels: i.Labels, Locality: i.AZ, Ports: map[string]int{}})
		}
		out[at].Ports[i.ServicePortName] = i.Port
	}
	for _, e := range out {
		if len(e.Ports) != len(s.Ports) {
			return nil, fmt.Errorf("the workload at %s serves %d of %d ports: a ServiceEntry cannot say that", e.Address, len(e.Ports), len(s.Ports))
		}
	}
	return out, nil
}

func (i *instance) sameWorkload(e *endpoint) bool {
	return e.Address == i.IP && e.Locality == i.AZ && maps.Equal(e.Labels, i.Labels)
}

// validObject makes an object from its text, as a person would.
func validObject(kind string, meta metav1.ObjectMeta, spec any) (*schema.Object, error) {
	k, _ := schema.KindByName(kind)
	if k == nil {
		return nil, fmt.Errorf("there is no kind %s", kind)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": k.APIVersion(), "kind": kind, "metadata": meta, "spec": spec})
	if err != nil {
		return nil, err
	}
	obj, problems := schema.Decode(text, schema.Options{})
	return obj, problems.Err()
}
