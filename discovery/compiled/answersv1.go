package compiled

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy/v1"
)

// V1Answers has the v1 answers of a view. Clusters and routes are spliced from encoded
// parts. Listeners are encoded for each address of a proxy.
type V1Answers struct {
	View      *View
	Clusters  *xds.V1List
	Routes    map[string]*xds.V1List
	listeners *cached.Memo[xds.Answer]
	problems  diag.Collector
}

func encodeV1(v *View, ip string) (*V1Answers, error) {
	parts := &v.Encoder.V1
	a := &V1Answers{View: v, Routes: map[string]*xds.V1List{}, listeners: cached.NewMemo[xds.Answer](v.Encoder.MaxProxies)}
	a.Clusters = parts.ClustersOf(v.Config)
	a.Clusters.AddProblems(&a.problems)
	if a.Clusters.Err != nil {
		return nil, a.Clusters.Err
	}
	for _, t := range v.Config.RouteTables {
		table := parts.Table(t)
		a.Routes[t.Name] = table
		table.AddProblems(&a.problems)
		if table.Err != nil {
			return nil, table.Err
		}
	}
	ip = v.address(ip)
	listeners, problems := v1.Listeners(v.Config, ip)
	a.problems.Add(problems.Coded(diag.LostInV1)...)
	answer, err := xds.EncodeV1(listeners)
	a.listeners.Put(ip, answer)
	return a, err
}

func (a *V1Answers) ListenersAt(ip string) (xds.Answer, error) {
	ip = a.View.address(ip)
	if answer, ok := a.listeners.Get(ip); ok {
		return answer, nil
	}
	var answer xds.Answer
	err := a.View.Encoder.Contain("v1 listeners", func() (err error) {
		listeners, _ := v1.Listeners(a.View.Config, ip)
		answer, err = xds.EncodeV1(listeners)
		return err
	})
	if err != nil {
		return xds.Answer{}, err
	}
	return a.listeners.Put(ip, answer), nil
}
