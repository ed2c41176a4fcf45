package mesh

import (
	"time"
)

// Settings hold for the whole mesh (--mesh-config). Field names in the file
// are those of Pilot's mesh configuration.
type Settings struct {
	ProxyListenPort       int           // 0: only the HTTP proxy port is served
	ProxyHTTPPort         int           // 0: none
	ConnectTimeout        time.Duration // 1 ms at least
	RDSRefreshDelay       time.Duration
	DiscoveryRefreshDelay time.Duration
	EnableTracing         bool
	AccessLogFile         string
	// Domain of the mesh, "cluster.local": what short service names end in,
	// after the namespace and "svc". It comes from a flag, not from the file.
	Domain string
}

// DefaultSettings is what a mesh without a file runs with: Pilot's defaults,
// and a discovery delay of five seconds.
func DefaultSettings() *Settings {
	return &Settings{
		ProxyListenPort:       15001,
		ConnectTimeout:        time.Second,
		RDSRefreshDelay:       time.Second,
		DiscoveryRefreshDelay: 5 * time.Second,
		EnableTracing:         true,
		AccessLogFile:         "/dev/stdout",
		Domain:                "cluster.local",
	}
}
