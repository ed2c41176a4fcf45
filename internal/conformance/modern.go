package main

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// modern converts v1alpha3 objects, in camel case, to today's form.
var modern = map[string]func(*written){
	"ExternalService": modernExternalService,
	"DestinationRule": modernDestinationRule,
	"VirtualService":  modernVirtualService,
	"Gateway":         func(*written) {},
}

func modernExternalService(o *written) {
	o.Kind = "ServiceEntry"
	rename(o.Spec, "discovery", "resolution")
	o.Spec["location"] = "MESH_EXTERNAL"
}

func modernDestinationRule(o *written) {
	rename(o.Spec, "name", "host")
	for _, holder := range append(objects(o.Spec["subsets"]), o.Spec) {
		policy := member(holder, "trafficPolicy")
		if outlier := member(policy, "outlierDetection"); outlier != nil {
			policy["outlierDetection"] = outlier["http"]
			rename(member(policy, "outlierDetection"), "consecutiveErrors", "consecutive5xxErrors")
		}
		if balancer := member(policy, "loadBalancer"); balancer["simple"] == "LEAST_CONN" {
			balancer["simple"] = "LEAST_REQUEST"
		}
	}
}

func modernVirtualService(o *written) {
	for _, route := range objects(o.Spec["tcp"]) {
		modernDestinations(route)
	}
	modernWebsockets(o)
	for _, route := range objects(o.Spec["http"]) {
		modernDestinations(route)
		modernFault(member(route, "fault"))
		modernCORS(member(route, "corsPolicy"))
		if added, ok := route["appendHeaders"]; ok {
			delete(route, "appendHeaders")
			route["headers"] = map[string]any{"request": map[string]any{"add": added}}
		}
	}
}

// modernWebsockets names the websocket routes in an annotation. Istio has no field for
// them any more, because later Envoys need none.
func modernWebsockets(o *written) {
	var names []string
	for i, route := range objects(o.Spec["http"]) {
		if route["websocketUpgrade"] == true {
			name := fmt.Sprintf("websocket-%d", i)
			names = append(names, name)
			route["name"] = name
		}
		delete(route, "websocketUpgrade")
	}
	if len(names) > 0 {
		metav1.SetMetaDataAnnotation(&o.Metadata, "pilot-api/websocket-routes", strings.Join(names, ","))
	}
}

// modernDestinations names hosts. Named ports no longer exist; Pilot did not read any.
func modernDestinations(route map[string]any) {
	destinations := []map[string]any{member(route, "mirror")}
	for _, weighted := range objects(route["route"]) {
		destinations = append(destinations, member(weighted, "destination"))
	}
	for _, d := range destinations {
		rename(d, "name", "host")
		if port := member(d, "port"); port["name"] != nil {
			delete(d, "port")
		}
	}
}

// modernFault converts percent to percentage. It omits 0, which meant all requests to
// Pilot, as a missing percent did.
func modernFault(fault map[string]any) {
	for _, part := range []map[string]any{member(fault, "delay"), member(fault, "abort")} {
		if percent, ok := part["percent"].(float64); ok {
			delete(part, "percent")
			if percent != 0 {
				part["percentage"] = map[string]any{"value": percent}
			}
		}
	}
}

func modernCORS(cors map[string]any) {
	origins, _ := cors["allowOrigin"].([]any)
	for i, origin := range origins {
		origins[i] = map[string]any{"exact": origin}
	}
	rename(cors, "allowOrigin", "allowOrigins")
}

func rename(m map[string]any, from, to string) {
	if value, ok := m[from]; ok {
		delete(m, from)
		m[to] = value
	}
}

// member returns the object at a name, nil if there is none.
func member(m map[string]any, name string) map[string]any {
	inner, _ := m[name].(map[string]any)
	return inner
}

// objects returns the objects of a list.
func objects(list any) []map[string]any {
	var out []map[string]any
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
