package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/dryrun"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// previewPath previews changes of objects.
const previewPath = "/apis/" + wire.RegistryVersion + "/preview"

// newest is the AtLeast of a read that needs everything written before it.
const newest = 0

var previewParams = wire.Params("namespace", "local", "api", "without", "proxiesIn")

// previewTimeout is how long a request waits for another replica, which compiles
// the whole mesh for its answer.
const previewTimeout = 20 * time.Second

// previewed is a preview of several replicas and a list of the missing ones.
type previewed struct {
	*discovery.Preview
	Missing []string `json:"missing,omitempty"`
}

// preview answers how the configuration of proxies would change if the objects of
// the body replaced the stored ones, and those of without were deleted. It covers the proxies connected to any
// replica, or with local=true to this one. With api=v1 the problems include what
// Envoys of that API would lose. It stores nothing.
func (h *Handler) preview(w http.ResponseWriter, r *http.Request) error {
	q := wire.Query(r)
	if err := wire.CheckParams(q, previewParams); err != nil {
		return err
	}
	namespace := q.Get("namespace")
	if namespace == "" {
		namespace = schema.DefaultNamespace
	}
	if err := schema.CheckNamespace(namespace); err != nil {
		return wire.BadRequest("namespace: %v", err)
	}
	local, err := h.isLocal(r, q)
	if err != nil {
		return err
	}
	inV1, err := asksV1(q)
	if err != nil {
		return err
	}
	without, err := withoutParam(q)
	if err != nil {
		return err
	}
	body, media, err := intake.ReadBody(r, wire.ObjectTypes...)
	if err != nil {
		return err
	}
	if media == wire.JSON.Names()[0] && !json.Valid(body) {
		return intake.MalformedJSON(body)
	}
	objects, err := h.opts.Bodies.ObjectsInTurn(r.Context(), body, namespace)
	if err != nil {
		return err
	}
	proxiesIn, err := h.mayPreview(r.Context(), q, objects, without)
	if err != nil {
		return err
	}
	if err := h.wouldStore(r.Context(), objects); err != nil {
		return err
	}
	for _, o := range objects {
		if slices.Contains(without, o.Key()) {
			return wire.BadRequest("query parameter without: %s is in the body", o.Key())
		}
	}
	if err := h.AwaitPublished(r.Context(), newest); err != nil {
		return err
	}
	p, err := h.opts.Discovery.Preview(r.Context(), discovery.PreviewOptions{Objects: objects, Without: without, InV1: inV1, Namespaces: proxiesIn})
	if err != nil {
		return notCompiled(err)
	}
	out := previewed{Preview: p}
	if !local {
		out.Missing = h.previewOfOthers(w, r, proxiesIn, body, media, p)
	}
	p.Problems, _ = h.visible(r.Context(), p.Problems)
	p.Solved, _ = h.visible(r.Context(), p.Solved)
	return answer.WriteJSON(w, r, out)
}

// mayPreview returns the namespaces of the proxies that a preview looks at, nil for all. A
// caller that may not preview in all namespaces must have the right in those of the objects,
// and sees the proxies there.
func (h *Handler) mayPreview(ctx context.Context, q url.Values, objects []*schema.Object, without []schema.Key) ([]string, error) {
	var asked []string
	if q.Has("proxiesIn") {
		asked = strings.Split(q.Get("proxiesIn"), ",")
	}
	may := h.namespaces(ctx, "create", "previews")
	if may("") {
		return asked, nil
	}
	var of []string
	for _, o := range objects {
		of = append(of, o.Meta.Namespace)
	}
	for _, key := range without {
		of = append(of, key.Namespace)
	}
	for _, namespace := range slices.Concat(of, asked) {
		if !may(namespace) {
			return nil, h.opts.Guard.Denied(ctx, inspecting("create", "previews", namespace))
		}
	}
	if len(of) == 0 {
		return nil, h.opts.Guard.Denied(ctx, inspecting("create", "previews", ""))
	}
	if asked == nil {
		asked = slices.Compact(slices.Sorted(slices.Values(of)))
	}
	return asked, nil
}

// withoutParam reads the objects that a preview leaves out.
func withoutParam(q url.Values) (keys []schema.Key, err error) {
	if !q.Has("without") {
		return nil, nil
	}
	for one := range strings.SplitSeq(q.Get("without"), ",") {
		ref, err := refParam("without", one)
		if err != nil {
			return nil, err
		}
		keys = append(keys, schema.Key(ref))
	}
	return keys, nil
}

// notCompiled converts an error of a request that compiles the mesh aside.
func notCompiled(err error) error {
	if errors.Is(err, discovery.ErrBusy) {
		return apierrors.NewTooManyRequests("the server compiles the mesh for one request at a time, and another one is running; try again", 1)
	}
	return notInspected(err)
}

// previewOfOthers adds the previews of the other replicas and returns the missing
// ones.
func (h *Handler) previewOfOthers(w http.ResponseWriter, r *http.Request, proxiesIn []string, body []byte, media string, into *discovery.Preview) []string {
	ctx, cancel := context.WithTimeout(r.Context(), previewTimeout)
	defer cancel()
	q := withoutAPI(wire.Query(r))
	if proxiesIn != nil {
		q.Set("proxiesIn", strings.Join(proxiesIn, ","))
	}
	var mu sync.Mutex
	return h.askOthers(ctx, w, "proxies", func(of replica.Replica) error {
		var found discovery.Preview
		err := replica.Post(ctx, of, []string{previewPath}, q, body, media, &found)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			into.Add(&found)
		}
		return err
	})
}

// wouldStore replaces objects by what an apply would store for them.
func (h *Handler) wouldStore(ctx context.Context, objects []*schema.Object) error {
	writes := dryrun.New(h.opts.Store, h.opts.MaxTransaction)
	seen := map[schema.Key]bool{}
	for i, o := range objects {
		if o.Meta.Name == "" {
			return wire.BadRequest("%s: metadata.name is required", o.Kind.Kind)
		}
		if seen[o.Key()] {
			return wire.BadRequest("%s is there twice", o.Key())
		}
		seen[o.Key()] = true
		stored, err := writes.Update(ctx, o)
		if errors.Is(err, store.ErrNotFound) && o.Meta.ResourceVersion == "" {
			stored, err = writes.Create(ctx, o)
		}
		if err != nil {
			return err
		}
		objects[i] = stored
	}
	return nil
}
