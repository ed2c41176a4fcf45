package bridge

import (
	"errors"
	"fmt"
)

// action is the part of a route that says where requests go, and how.
type action struct {
	Cluster       string    `json:"cluster"`
	Weighted      *weighted `json:"weighted_clusters"`
	PrefixRewrite string    `json:"prefix_rewrite"`
	HostRewrite   string    `json:"host_rewrite"`
	Timeout       *int64    `json:"timeout_ms"`
	Retry         *retry    `json:"retry_policy"`
	Websocket     bool      `json:"use_websocket"`
	Shadow        *struct {
		Cluster string `json:"cluster"`
	} `json:"shadow"`
}

func (a *action) turn() (object, error) {
	o, err := a.target()
	if err != nil {
		return nil, err
	}
	if a.PrefixRewrite != "" {
		o["prefix_rewrite"] = a.PrefixRewrite
	}
	if a.HostRewrite != "" {
		o["host_rewrite_literal"] = a.HostRewrite
	}
	if a.Timeout != nil {
		o["timeout"] = duration(*a.Timeout)
	}
	if a.Retry != nil {
		o["retry_policy"] = a.Retry.turn()
	}
	if a.Websocket {
		o["upgrade_configs"] = list{object{"upgrade_type": "websocket", "enabled": true}}
	}
	if a.Shadow != nil {
		o["request_mirror_policies"] = list{object{"cluster": a.Shadow.Cluster}}
	}
	return o, nil
}

func (a *action) target() (object, error) {
	switch {
	case a.Weighted == nil && a.Cluster == "":
		return nil, errors.New("a route has a cluster, weighted clusters or a redirect")
	case a.Weighted == nil:
		return object{"cluster": a.Cluster}, nil
	case a.Cluster != "":
		return nil, errors.New("a cluster excludes weighted clusters")
	default:
		return a.Weighted.turn()
	}
}

type weighted struct {
	Clusters []share `json:"clusters"`
}

// share is the same in v1 and v3.
type share struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
}

func (w *weighted) turn() (object, error) {
	sum := 0
	for _, c := range w.Clusters {
		sum += c.Weight
	}
	if sum != 100 {
		return nil, fmt.Errorf("weights sum to %d, and v1 refused all but 100", sum)
	}
	return object{"weighted_clusters": object{"clusters": w.Clusters}}, nil
}

type retry struct {
	On            string `json:"retry_on"`
	Retries       *int   `json:"num_retries"`
	PerTryTimeout int64  `json:"per_try_timeout_ms"`
}

func (r *retry) turn() object {
	o := object{"retry_on": r.On}
	if r.Retries != nil {
		o["num_retries"] = *r.Retries
	}
	if r.PerTryTimeout > 0 {
		o["per_try_timeout"] = duration(r.PerTryTimeout)
	}
	return o
}
