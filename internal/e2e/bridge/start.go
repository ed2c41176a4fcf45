package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
)

// start is the part of a v1 bootstrap that istioctl writes.
type start struct {
	Listeners []json.RawMessage `json:"listeners"`
	LDS       struct {
		Cluster      string `json:"cluster"`
		RefreshDelay int    `json:"refresh_delay_ms"`
	} `json:"lds"`
	Admin struct {
		AccessLog string `json:"access_log_path"`
		Address   string `json:"address"`
	} `json:"admin"`
	Manager struct {
		Clusters []cluster `json:"clusters"`
		CDS      source    `json:"cds"`
		SDS      source    `json:"sds"`
	} `json:"cluster_manager"`
}

// source contains its cluster, unlike LDS and RDS, which name one.
type source struct {
	Cluster      cluster `json:"cluster"`
	RefreshDelay int     `json:"refresh_delay_ms"`
}

func readStart(bootstrap []byte) (*start, error) {
	s := &start{}
	if err := read(bootstrap, s); err != nil {
		return nil, err
	}
	if len(s.Listeners) > 0 {
		return nil, errors.New("listeners are to come from LDS alone")
	}
	return s, nil
}

// static returns the cluster of the bootstrap that LDS and RDS name.
func (s *start) static(name string) (*cluster, error) {
	i := slices.IndexFunc(s.Manager.Clusters, func(c cluster) bool { return c.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("cluster %q is not in the bootstrap", name)
	}
	return &s.Manager.Clusters[i], nil
}

// server returns the address of the one host of a bootstrap cluster.
func (c *cluster) server() (string, error) {
	if c.Type != "static" || len(c.Hosts) != 1 || c.SSLContext != nil {
		return "", fmt.Errorf("cluster %s: discovery is reached at one static host without TLS only", c.Name)
	}
	at, err := url.Parse(c.Hosts[0].URL)
	if err != nil {
		return "", err
	}
	return at.Host, nil
}

// Bootstrap returns a v3 bootstrap for the files of Poll. Start Envoy after the first
// Poll, because it does not wait for files to appear.
func (b *Bridge) Bootstrap() ([]byte, error) {
	admin, err := address(b.start.Admin.Address)
	if err != nil {
		return nil, err
	}
	return json.Marshal(object{
		"node":  object{"cluster": b.cluster, "id": b.node},
		"admin": object{"address": admin},
		"dynamic_resources": object{
			"cds_config": fileSource(b.file("clusters")),
			"lds_config": fileSource(b.file("listeners")),
		},
		// v1 did not have the current limit on regexes.
		"layered_runtime": object{"layers": list{object{
			"name":         "v1",
			"static_layer": object{"re2.max_program_size.error_level": 10_000},
		}}},
	})
}
