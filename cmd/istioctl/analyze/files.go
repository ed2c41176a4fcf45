package analyze

import (
	"context"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/offline"
	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// analyzeFiles analyzes the objects of the files alone, as proxies in each namespace
// and for each Gateway would follow them.
func (f *Options) analyzeFiles(ctx context.Context, s *cli.Session) (*client.Problems, error) {
	settings, err := f.Settings(ctx, s)
	if err != nil {
		return nil, err
	}
	docs, err := manifest.Documents(ctx, s, f.Files)
	if err != nil {
		return nil, err
	}
	list, problems, err := manifest.Check(ctx, s, docs)
	if err != nil {
		return nil, err
	}
	problems = append(problems, manifest.Repeated(diag.Error)(list)...)
	var objects []*schema.Object
	for _, m := range firstOfEach(list) {
		objects = append(objects, m.Object)
	}
	if len(objects) == 0 && len(problems) == 0 {
		return nil, f.Files.NoObjects()
	}
	snapshot := mesh.NewSnapshot(0, settings, objects).WithFiles(offline.SecretFiles(settings))
	c := compile.NewCompiler()
	c.Advance(snapshot)
	problems = slices.Concat(problems, snapshot.Problems, c.Problems(), new(mesh.Expiries).Advance(snapshot, time.Now()))
	var lost v1.Losses
	for _, proxy := range snapshot.ExpectedProxies() {
		config, own := c.Proxy(snapshot.TraitsOf(proxy))
		if problems = append(problems, own...); f.v1 {
			problems = append(problems, lost.Advance(config, proxy.IP)...)
		}
	}
	return &client.Problems{Problems: located(problems, list)}, nil
}
