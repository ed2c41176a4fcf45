package proxy

import (
	"context"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/explain"
)

// Lister lists the proxies that the server knows.
type Lister interface {
	Proxies(ctx context.Context) ([]client.Proxy, error)
}

// Inventory lists the proxies that the server knows, and those that were connected to it.
type Inventory interface {
	AllProxies(ctx context.Context) ([]client.Proxy, error)
}

// Proxies returns the proxies that the server knows, and the configuration that it has for
// them.
type Proxies interface {
	Lister
	Proxy(ctx context.Context, node string) ([]client.Proxy, error)
	Config(ctx context.Context, of client.ProxyRef, configType string) (*client.ProxyConfig, error)
	Summary(ctx context.Context, of client.ProxyRef, configType string) (*explain.Summary, error)
	Explain(ctx context.Context, by client.ProxyRef, method, target string, headers []string) (*explain.Explanation, error)
}

// connectTo returns the connection of a session as its proxies.
func connectTo(s *cli.Session) func(warn func(string)) (Proxies, error) {
	return func(warn func(string)) (Proxies, error) { return s.ConnectToRead(warn) }
}
