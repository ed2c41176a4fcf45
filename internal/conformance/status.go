package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// statusCase is an entry of status-cases.yaml.
type statusCase struct {
	Test, Path string
	// RegistryFault names the call to the registry that fails. Here the registry is one
	// source, which then cannot be read.
	RegistryFault, RegistryFaultText string
	// ProxyInstancesAZ, if set, are the zones of the proxy's instances.
	ProxyInstancesAZ *[]string
	Status           int
	Body             *string // nil: any
}

// checkStatus runs one case. The error describes the difference.
func (s *suite) checkStatus(ctx context.Context, c *statusCase) error {
	settings, err := s.settings(nil)
	if err != nil {
		return err
	}
	objects, err := s.registryOf(c).objects()
	if err != nil {
		return err
	}
	status, body, err := ask(ctx, settings, objects, c.fault(), c.Path)
	switch {
	case err != nil:
		return err
	case status != c.Status:
		return fmt.Errorf("status: want %d, got %d: %s", c.Status, status, shorten(body))
	case c.Body != nil && *c.Body != string(body):
		return fmt.Errorf("body: want %q, got %q", *c.Body, body)
	}
	return nil
}

func (c *statusCase) fault() error {
	switch {
	case c.RegistryFault == "":
		return nil
	case c.RegistryFaultText == "":
		return errors.New("the registry cannot be read")
	}
	return errors.New(c.RegistryFaultText)
}

// registryOf returns the registry with the instances that the case gives its proxy.
func (s *suite) registryOf(c *statusCase) *registry {
	if c.ProxyInstancesAZ == nil {
		return s.registry
	}
	out := *s.registry
	out.Services = nil
	for _, svc := range s.registry.Services {
		svc.Instances = rezoned(svc.Instances, nodeIP(c.Path), *c.ProxyInstancesAZ)
		out.Services = append(out.Services, svc)
	}
	return &out
}

// rezoned puts the instances at ip into the first of the zones. It drops them if there
// are no zones.
func rezoned(instances []instance, ip string, zones []string) []instance {
	var out []instance
	for _, i := range instances {
		if i.IP == ip && len(zones) == 0 {
			continue
		}
		if i.IP == ip {
			i.AZ = zones[0]
		}
		out = append(out, i)
	}
	return out
}

// nodeIP returns the address in the node at the end of a path.
func nodeIP(path string) string {
	node := path[strings.LastIndexByte(path, '/')+1:]
	parts := strings.Split(node, "~")
	return parts[min(1, len(parts)-1)]
}
