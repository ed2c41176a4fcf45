package evaluator

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// V1Answers are the bodies that a v1 Envoy polled: route tables by route name and
// endpoints by service name.
type V1Answers struct {
	Clusters, Listeners []byte
	Routes, Endpoints   map[string][]byte
}

// ReadV1 reads the answers. The error lists everything that this package does not know
// and everything that an Envoy would refuse.
func ReadV1(a V1Answers) (*Proxy, error) {
	r := &v1Reader{tables: map[string][]*VirtualHost{}, endpoints: map[string][]Endpoint{}}
	for _, key := range slices.Sorted(maps.Keys(a.Endpoints)) {
		r.readEndpoints(key, a.Endpoints[key])
	}
	r.readClusters(a.Clusters)
	for _, name := range slices.Sorted(maps.Keys(a.Routes)) {
		var table v1Table
		r.decode("table "+name, a.Routes[name], &table)
		r.tables[name] = r.table("table "+name, table)
	}
	r.readListeners(a.Listeners)
	return r.result()
}

type v1Reader struct {
	reader
	tables    map[string][]*VirtualHost
	endpoints map[string][]Endpoint
}

// decode decodes strictly.
func (r *v1Reader) decode(at string, text []byte, into any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		r.fail(at, "%v", err)
	}
}

// empty checks the config of a filter that has none.
func (r *v1Reader) empty(at string, text json.RawMessage) {
	r.decode(at, text, &struct{}{})
}

// milliseconds converts a v1 time.
func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// withDefault returns the value of an optional field.
func withDefault[T any](field *T, otherwise T) T {
	if field == nil {
		return otherwise
	}
	return *field
}

func (r *v1Reader) readEndpoints(key string, text []byte) {
	var answer struct {
		Hosts []struct {
			IP   string `json:"ip_address"`
			Port int    `json:"port"`
			Tags struct {
				Zone   string `json:"az"`
				Weight *int   `json:"load_balancing_weight"`
			} `json:"tags"`
		} `json:"hosts"`
	}
	at := "endpoints of " + key
	r.decode(at, text, &answer)
	r.endpoints[key] = []Endpoint{}
	for _, h := range answer.Hosts {
		r.endpoints[key] = append(r.endpoints[key], Endpoint{
			Address: hostPort(h.IP, h.Port),
			Zone:    h.Tags.Zone, Weight: withDefault(h.Tags.Weight, 1),
		})
	}
}
