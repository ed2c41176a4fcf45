package compile

import (
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// managementPorts writes listeners that pass connections for probes and the like to
// the workload unchanged, whatever their protocol. A port that a service has is not
// a management port.
func (c *writer) managementPorts() {
	for _, port := range c.plan.settings.ManagementPorts {
		if port.Protocol == mesh.UDP || c.inbound[port.Number] != nil {
			continue
		}
		cluster := c.needLocal(port.Number, false, nil)
		c.listen(&ir.Listener{
			Port: port.Number, Direction: ir.Inbound,
			TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole(cluster)}}},
		})
	}
}
