package bridge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Answers are the bodies that an old Envoy received in one round.
type Answers struct {
	Clusters, Listeners []byte
	Routes              map[string][]byte // By the name of the table.
	Hosts               map[string][]byte // By the name of the service.
}

// Ask polls as an old Envoy did: for clusters and listeners, and for what those name. If a
// status is not 200, Ask fails; an old Envoy kept what it had.
func (b *Bridge) Ask(ctx context.Context) (*Answers, error) {
	a := &Answers{Routes: map[string][]byte{}, Hosts: map[string][]byte{}}
	if err := b.askClusters(ctx, a); err != nil {
		return nil, fmt.Errorf("CDS: %w", err)
	}
	if err := b.askListeners(ctx, a); err != nil {
		return nil, fmt.Errorf("LDS: %w", err)
	}
	return a, nil
}

func (b *Bridge) askClusters(ctx context.Context, a *Answers) (err error) {
	if a.Clusters, err = get(ctx, &b.start.Manager.CDS.Cluster, "/v1/clusters/"+b.cluster+"/"+b.node); err != nil {
		return err
	}
	services, err := servicesOf(a.Clusters)
	if err != nil {
		return err
	}
	for _, name := range services {
		if a.Hosts[name], err = get(ctx, &b.start.Manager.SDS.Cluster, "/v1/registration/"+name); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bridge) askListeners(ctx context.Context, a *Answers) error {
	from, err := b.start.static(b.start.LDS.Cluster)
	if err != nil {
		return err
	}
	if a.Listeners, err = get(ctx, from, "/v1/listeners/"+b.cluster+"/"+b.node); err != nil {
		return err
	}
	tables, err := tablesOf(a.Listeners)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if from, err = b.start.static(t.Cluster); err != nil {
			return err
		}
		if a.Routes[t.Name], err = get(ctx, from, "/v1/routes/"+t.Name+"/"+b.cluster+"/"+b.node); err != nil {
			return err
		}
	}
	return nil
}

// get sends what an old Envoy sent: unescaped names, and the name of the cluster as the
// host.
func get(ctx context.Context, from *cluster, path string) ([]byte, error) {
	server, err := from.server()
	if err != nil {
		return nil, err
	}
	req := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: server, Opaque: path},
		Host:   from.Name,
		Header: http.Header{"X-Envoy-Internal": {"true"}},
	}).WithContext(ctx)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s\n%s", path, resp.Status, body)
	}
	return body, err
}
