package bridge

import (
	"errors"
	"fmt"
)

type routeTable struct {
	ValidateClusters *bool         `json:"validate_clusters"`
	VirtualHosts     []virtualHost `json:"virtual_hosts"`
}

type virtualHost struct {
	Name    string   `json:"name"`
	Domains []string `json:"domains"`
	Routes  []route  `json:"routes"`
}

// turn sets the name of the table to the one that its listener asks for.
func (t *routeTable) turn(name string) (object, error) {
	virtualHosts, err := turnAll(t.VirtualHosts, (*virtualHost).turn)
	if err != nil {
		return nil, fmt.Errorf("virtual_hosts%w", err)
	}
	o := object{"name": name, "virtual_hosts": virtualHosts}
	if t.ValidateClusters != nil {
		o["validate_clusters"] = *t.ValidateClusters
	}
	return o, nil
}

func (h *virtualHost) turn() (object, error) {
	routes, err := turnAll(h.Routes, (*route).turn)
	if err != nil {
		return nil, fmt.Errorf("%s: routes%w", h.Name, err)
	}
	return object{"name": h.Name, "domains": h.Domains, "routes": routes}, nil
}

// route has a cluster, several clusters, or a redirect.
type route struct {
	match
	action
	HostRedirect        string     `json:"host_redirect"`
	PathRedirect        string     `json:"path_redirect"`
	CORS                *cors      `json:"cors"`
	RequestHeadersToAdd []addition `json:"request_headers_to_add"`
	Decorator           *decorator `json:"decorator"`
}

type addition struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// decorator is the same in v1 and v3.
type decorator struct {
	Operation string `json:"operation"`
}

func (r *route) turn() (object, error) {
	matching, err := r.match.turn()
	if err != nil {
		return nil, err
	}
	o := object{"match": matching}
	if r.HostRedirect != "" || r.PathRedirect != "" {
		o["redirect"], err = r.redirect()
	} else {
		o["route"], err = r.action.turn()
	}
	if r.CORS != nil {
		o["typed_per_filter_config"] = object{corsFilter: r.CORS.turn()}
	}
	if r.RequestHeadersToAdd != nil {
		o["request_headers_to_add"] = turnAdditions(r.RequestHeadersToAdd)
	}
	if r.Decorator != nil {
		o["decorator"] = r.Decorator
	}
	return o, err
}

// redirect converts a redirect. A redirect to a path drops the query, as in v1.
func (r *route) redirect() (object, error) {
	if r.Cluster != "" || r.Weighted != nil {
		return nil, errors.New("a redirect excludes clusters")
	}
	o := object{"strip_query": r.PathRedirect != ""}
	if r.HostRedirect != "" {
		o["host_redirect"] = r.HostRedirect
	}
	if r.PathRedirect != "" {
		o["path_redirect"] = r.PathRedirect
	}
	return o, nil
}

func turnAdditions(additions []addition) list {
	out := make(list, len(additions))
	for i, a := range additions {
		out[i] = object{"header": a}
	}
	return out
}
