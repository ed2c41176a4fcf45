package mesh

import (
	"time"

	"github.com/pilot-api/pilot-api/diag"
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

// DefaultSettings is what a mesh without a file runs with.
func DefaultSettings() *Settings { panic("not written yet") }

// ParseSettings reads a mesh configuration, as strictly as an object is read:
// unknown names and bad values are problems with line and column. Names that
// Pilot had and that have no meaning here are read with a warning.
func ParseSettings(text []byte, file string) (*Settings, diag.List) { panic("not written yet") }
