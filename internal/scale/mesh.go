// Package scale measures a server with many services, namespaces and proxies. A Mesh is
// the configuration, a Proxy is a client of delta ADS that keeps only names and versions,
// so that a thousand of them fit beside the server on a small machine.
package scale

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
)

// Mesh is a mesh of services of one HTTP port and four instances. They are spread over
// the namespaces, and all namespaces see them. Each service has a VirtualService and a
// DestinationRule in its namespace.
type Mesh struct {
	Services, Namespaces int
	// ExportTo is that of the rules: "." or "*".
	ExportTo string
}

// writers is how many objects are created at a time.
const writers = 16

// Create creates the objects of all services.
func (m Mesh) Create(ctx context.Context, c *client.Client) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for n := range m.Services {
		g.Go(func() error { return m.CreateService(ctx, c, n) })
	}
	return g.Wait()
}

// CreateService creates the objects of one service.
func (m Mesh) CreateService(ctx context.Context, c *client.Client, n int) error {
	for _, o := range []*schema.Object{m.entry(n, 4), m.settings(n), m.Rule(n, "5s")} {
		if _, err := c.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// Rule returns the VirtualService of a service with a timeout.
func (m Mesh) Rule(n int, timeout string) *schema.Object {
	return m.object("VirtualService", n, fmt.Sprintf(
		`{"hosts":[%q],"exportTo":[%q],"http":[{"timeout":%q,"route":[{"destination":{"host":%[1]q,"subset":"v1"}}]}]}`,
		m.host(n), m.ExportTo, timeout))
}

// WithInstances returns the ServiceEntry of a service with a number of instances.
func (m Mesh) WithInstances(n, instances int) *schema.Object { return m.entry(n, instances) }

func (m Mesh) entry(n, instances int) *schema.Object {
	endpoints := ""
	for i := range instances {
		endpoints += fmt.Sprintf(`,{"address":"10.%d.%d.%d","labels":{"version":"v%d"}}`, 1+n/250, n%250, 1+i, i%2)
	}
	return m.object("ServiceEntry", n, fmt.Sprintf(
		`{"hosts":[%q],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[%s]}`,
		m.host(n), endpoints[1:]))
}

func (m Mesh) settings(n int) *schema.Object {
	return m.object("DestinationRule", n, fmt.Sprintf(
		`{"host":%q,"exportTo":[%q],"subsets":[{"name":"v1","labels":{"version":"v1"}}]}`, m.host(n), m.ExportTo))
}

func (m Mesh) object(kindName string, n int, spec string) *schema.Object {
	kind, _ := schema.KindByName(kindName)
	o, err := schema.New(kind, metav1.ObjectMeta{Name: service(n), Namespace: m.Namespace(n)}, []byte(spec))
	if err != nil {
		panic(err) // The text is constant but for names.
	}
	return o
}

func service(n int) string { return fmt.Sprintf("service-%05d", n) }

// Namespace returns the namespace of a service or proxy.
func (m Mesh) Namespace(n int) string { return fmt.Sprintf("team-%03d", n%m.Namespaces) }

func (m Mesh) host(n int) string {
	return service(n) + "." + m.Namespace(n) + ".svc.cluster.local"
}

// Node returns the id of a proxy, which has no workload of the mesh beside it.
func (m Mesh) Node(n int) string {
	namespace := m.Namespace(n)
	return fmt.Sprintf("sidecar~10.201.%d.%d~proxy-%04d.%s~%s.svc.cluster.local", n/250, 1+n%250, n, namespace, namespace)
}

// Calls returns the hosts of some services that the workload of a proxy calls, none for 0.
func (m Mesh) Calls(n, services int) (hosts []string) {
	const apart = 97 // so that proxies call different services
	for i := range services {
		hosts = append(hosts, m.host((n*31+i*apart)%m.Services))
	}
	return hosts
}
