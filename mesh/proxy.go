package mesh

// Role of a proxy in the mesh.
type Role string

const (
	Sidecar Role = "sidecar" // beside one workload
	Ingress Role = "ingress" // at the edge, for IngressRules
	Router  Role = "router"  // at the edge, for Gateways
)

// Proxy is the identity that an Envoy states in every request for
// configuration: "role~ip~id~domain".
type Proxy struct {
	Role   Role
	IP     string
	ID     string
	Domain string
}

// ParseProxy reads an identity. The error says which part is wrong and what is
// allowed.
func ParseProxy(node string) (Proxy, error) { panic("not written yet") }

func (p Proxy) String() string { panic("not written yet") }

// View is everything about a proxy that its configuration may depend on,
// apart from its address. Proxies with equal Key get the same configuration.
type View struct {
	Role   Role
	Domain string
	// Instances at the proxy's address, in registry order: what the
	// workload beside it serves. Empty for ingress and router.
	Instances []*Instance
}

// View of a proxy in this snapshot.
func (s *Snapshot) View(p Proxy) View { panic("not written yet") }

// Key is equal for views that give the same configuration within one
// snapshot: role, domain, and the host, port, endpoint port and labels of
// every own instance.
func (v View) Key() string { panic("not written yet") }
