package bridge

import (
	"errors"
	"net/netip"
)

type hosts struct {
	Hosts []host `json:"hosts"`
}

type host struct {
	IP   netip.Addr `json:"ip_address"`
	Port int        `json:"port"`
	Tags struct {
		Zone   string `json:"az"`
		Weight int    `json:"load_balancing_weight"`
	} `json:"tags"`
}

// addHosts adds the cluster's hosts by its type: its own, those of SDS, or none but the
// original destination.
func (c *cluster) addHosts(o object, sds []byte) error {
	var groups list
	var err error
	switch {
	case c.Type == "sds" && sds == nil:
		return errors.New("there was no answer of SDS")
	case c.Type == "sds":
		groups, err = turnHosts(sds)
	case c.Type == "original_dst" && c.Hosts != nil:
		return errors.New("hosts are forbidden for type original_dst")
	case c.Type == "original_dst":
		o["original_dst_lb_config"] = object{"use_http_header": true}
		return nil
	default:
		groups, err = c.ownHosts()
	}
	o["load_assignment"] = object{"cluster_name": c.Name, "endpoints": groups}
	return err
}

func (c *cluster) ownHosts() (list, error) {
	if len(c.Hosts) == 0 {
		return nil, errors.New("a cluster of this type needs a host")
	}
	var endpoints list
	for _, h := range c.Hosts {
		at, err := address(h.URL)
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, object{"endpoint": object{"address": at}})
	}
	return list{object{"lb_endpoints": endpoints}}, nil
}

// turnHosts makes one group per zone, in the order of the first host of each.
func turnHosts(sds []byte) (list, error) {
	var body hosts
	if err := read(sds, &body); err != nil {
		return nil, err
	}
	zones := []string{}
	byZone := map[string]list{}
	for _, h := range body.Hosts {
		if byZone[h.Tags.Zone] == nil {
			zones = append(zones, h.Tags.Zone)
		}
		byZone[h.Tags.Zone] = append(byZone[h.Tags.Zone], h.turn())
	}
	groups := list{}
	for _, zone := range zones {
		groups = append(groups, object{"locality": object{"zone": zone}, "lb_endpoints": byZone[zone]})
	}
	return groups, nil
}

func (h *host) turn() object {
	o := object{"endpoint": object{"address": object{
		"socket_address": object{"address": h.IP.String(), "port_value": h.Port},
	}}}
	if h.Tags.Weight > 0 {
		o["load_balancing_weight"] = h.Tags.Weight
	}
	return o
}
