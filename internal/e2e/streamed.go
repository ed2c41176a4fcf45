package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// streamed asks the server whether a streaming proxy has acknowledged everything that is
// published. Then the proxy is offered what it has taken.
func (p *Pilot) streamed(node string) func(context.Context, state) (state, error) {
	return func(ctx context.Context, taken state) (state, error) {
		var published struct{ Revision int64 }
		if err := p.ask(ctx, "/debug/problems?resourceVersion=0", &published); err != nil {
			return nil, err
		}
		var known []struct {
			Revision int64
			Types    map[string]struct{ State, Error string }
		}
		if err := p.ask(ctx, "/apis/registry.istio.io/v1/proxies/"+url.PathEscape(node)+"?local=true", &known); err != nil {
			return nil, err
		}
		for _, proxy := range known {
			for name, t := range proxy.Types {
				if t.State != "SYNCED" {
					return nil, fmt.Errorf("%s are %s %s", name, t.State, t.Error)
				}
			}
			if proxy.Revision < published.Revision {
				return nil, fmt.Errorf("revision %d is published, %d taken", published.Revision, proxy.Revision)
			}
		}
		return taken, nil
	}
}

func (p *Pilot) ask(ctx context.Context, path string, answer any) error {
	text, err := fetch(ctx, p.URL+path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}
