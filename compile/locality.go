package compile

import (
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// localities sets the locality settings of a policy, else those of the mesh.
// Failover needs outlier detection, which finds failing endpoints.
func (w policyWriter) localities(policy *networking.TrafficPolicy) {
	setting, asked := policy.GetLoadBalancer().GetLocalityLbSetting(), true
	if setting == nil {
		setting, asked = w.settings.LocalityLbSetting, false
	}
	switch {
	case w.Type == ir.OriginalDestination || !schema.LocalitiesEnabled(setting):
	case len(setting.GetDistribute()) > 0:
		w.Localities = &ir.Localities{Distribute: distributions(setting.GetDistribute())}
	case policy.GetOutlierDetection() == nil:
	case asked || setting != nil || !w.pilot.DestinationRuleDefaults:
		w.Localities = &ir.Localities{
			Closer:    len(setting.GetFailoverPriority()) == 0 || len(setting.GetFailover()) > 0,
			Takeover:  takeovers(setting.GetFailover()),
			Labels:    setting.GetFailoverPriority(),
			ByDefault: !asked && len(setting.GetFailoverPriority()) == 0 && len(setting.GetFailover()) == 0,
		}
	}
}

func distributions(distribute []*networking.LocalityLoadBalancerSetting_Distribute) []ir.Distribution {
	var out []ir.Distribution
	for _, d := range distribute {
		one := ir.Distribution{From: d.GetFrom(), To: map[string]int{}}
		for to, weight := range d.GetTo() {
			if weight > 0 {
				one.To[to] = int(weight)
			}
		}
		out = append(out, one)
	}
	return out
}

func takeovers(failover []*networking.LocalityLoadBalancerSetting_Failover) []ir.Takeover {
	var out []ir.Takeover
	for _, f := range failover {
		out = append(out, ir.Takeover{From: f.GetFrom(), To: f.GetTo()})
	}
	return out
}

// unlabelled removes labels of hosts that nothing uses.
func unlabelled(c *ir.Cluster) {
	if c.Localities != nil && len(c.Localities.Labels) > 0 {
		return
	}
	for i := range c.Hosts {
		c.Hosts[i].Labels = nil
	}
}

// orderKey is a cluster with the order that some callers have its endpoints in.
type orderKey struct {
	cluster *ir.Cluster
	order   string
}

func (rp *reporter) ordered(key orderKey) *ir.Cluster {
	out := *key.cluster
	out.Order = ir.ParseOrder(key.order)
	out.Hosts = out.Order.Arranged(out.Hosts)
	sound, problems := ir.CloseCluster(&out)
	rp.problems.Add(problems...)
	return sound
}

// inOrder returns clusters with their endpoints in the order for this caller. Most
// clusters have no order.
func (c *writer) inOrder(clusters []*ir.Cluster) []*ir.Cluster {
	out, own := clusters, false
	var labels map[string]string
	for i, cluster := range clusters {
		if cluster.Localities == nil || c.caller == nil {
			continue
		}
		if labels == nil {
			labels = c.caller.allLabels()
		}
		order := cluster.Localities.For(c.caller.locality, labels)
		if order == nil {
			continue
		}
		if !own {
			out, own = append([]*ir.Cluster(nil), clusters...), true
		}
		out[i] = c.plan.orders.Get(c.plan.r, orderKey{cluster, order.String()})
	}
	return out
}

// allLabels returns the labels of the workload. If a label has several values, the
// first one wins.
func (c *caller) allLabels() map[string]string {
	out := map[string]string{}
	for _, i := range slices.Backward(c.own) {
		maps.Copy(out, i.Labels)
	}
	for _, labels := range slices.Backward(c.labels) {
		maps.Copy(out, labels)
	}
	return out
}
