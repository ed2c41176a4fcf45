package bridge

import (
	"encoding/json"
	"fmt"
)

type listeners struct {
	Listeners []listener `json:"listeners"`
}

type listener struct {
	Name           string     `json:"name"`
	Address        string     `json:"address"`
	Filters        []filter   `json:"filters"`
	SSLContext     *serverTLS `json:"ssl_context"`
	BindToPort     *bool      `json:"bind_to_port"`
	UseOriginalDst bool       `json:"use_original_dst"`
}

// filter is a network or HTTP filter. Its type had no effect.
type filter struct {
	Type   string          `json:"type"`
	Name   string          `json:"name"`
	Config json.RawMessage `json:"config"`
}

func readListeners(text []byte) ([]listener, error) {
	var body listeners
	err := read(text, &body)
	return body.Listeners, err
}

func turnListeners(text []byte, tableFile func(string) string) (list, error) {
	all, err := readListeners(text)
	if err != nil {
		return nil, err
	}
	return turnAll(all, func(l *listener) (object, error) {
		o, err := l.turn(tableFile)
		if err != nil {
			err = fmt.Errorf("%s: %w", l.Name, err)
		}
		return o, err
	})
}

func (l *listener) turn(tableFile func(string) string) (object, error) {
	at, err := address(l.Address)
	if err != nil {
		return nil, err
	}
	o := object{"name": l.Name, "address": at}
	if l.BindToPort != nil {
		o["bind_to_port"] = *l.BindToPort
	}
	if l.UseOriginalDst {
		o["use_original_dst"] = true
		o["listener_filters"] = list{typed("envoy.filters.listener.proxy_protocol",
			"envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol", nil)}
	}
	chains, err := l.chains(o, tableFile)
	if err != nil {
		return nil, err
	}
	if l.SSLContext != nil {
		for _, c := range chains {
			c["transport_socket"] = l.SSLContext.turn()
		}
	}
	o["filter_chains"] = chains
	return o, nil
}

// chains converts the filters to one chain, or for TCP to one chain per route.
func (l *listener) chains(o object, tableFile func(string) string) ([]object, error) {
	var before list // Filters that only observe.
	for i, f := range l.Filters {
		switch last := i == len(l.Filters)-1; {
		case f.Name == "mongo_proxy" && !last:
			sniffer, err := turnMongo(f.Config)
			if err != nil {
				return nil, err
			}
			before = append(before, sniffer)
		case f.Name == "tcp_proxy" && last:
			return turnTCP(f.Config, before)
		case f.Name == "http_connection_manager" && last && i == 0:
			return turnHTTP(f.Config, o, tableFile)
		default:
			return nil, fmt.Errorf("filter %s at place %d of %d is not known", f.Name, i+1, len(l.Filters))
		}
	}
	return []object{{}}, nil
}
