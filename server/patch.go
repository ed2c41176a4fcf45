package server

import (
	"encoding/json"
	"errors"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Bounds of one patch. An object is small; whoever needs more sends a PUT.
const (
	maxPatchOps = 1000
	// patchTries bounds how often a patch is applied anew because somebody
	// else was faster.
	patchTries = 8
)

func init() {
	// "copy" operations can double a document again and again; the library
	// has this bound for all of a process only.
	jsonpatch.AccumulatedCopySizeLimit = schema.MaxObjectBytes
}

// patchTypes are the media types of a patch. Kubernetes' strategic merge is
// for its built-in types only.
var patchTypes = []string{string(types.MergePatchType), string(types.JSONPatchType)}

// patch answers PATCH on an object.
func (k *resource) patch(w http.ResponseWriter, r *http.Request) error {
	f, writes, err := k.beginWrite(r, patchParams)
	if err != nil {
		return err
	}
	change, err := readPatch(w, r)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		current, err := k.opts.Reads.Get(r.Context(), k.target(r), store.ReadOptions{})
		if err != nil {
			return err
		}
		next, err := k.patched(w, current, change)
		if err != nil {
			return err
		}
		stored, err := writes.Update(r.Context(), next)
		if err == nil {
			return k.writeObject(w, r, http.StatusOK, f, stored)
		}
		// A patch that names a resourceVersion itself fails with the next
		// try, when that is not the current one any more.
		if try == patchTries || !errors.Is(err, store.ErrConflict) || next.Meta.ResourceVersion != current.Meta.ResourceVersion {
			return err
		}
	}
}

// patched is the object as the patch makes it, decoded as strictly as one that
// was sent whole. Its resourceVersion is the current one, unless the patch
// sets another: one that takes it away does not ask to overwrite what others
// write meanwhile.
func (k *resource) patched(w http.ResponseWriter, current *schema.Object, change patcher) (*schema.Object, error) {
	text, err := change(current.JSON())
	if err != nil {
		return nil, badRequest("the patch does not fit %s: %v", current.Key(), err)
	}
	w.Header().Del("Warning") // Of an earlier try.
	next, err := decodeFor(w, text, current.Key())
	if err != nil || next.Meta.ResourceVersion != "" {
		return next, err
	}
	meta := next.Meta
	meta.ResourceVersion = current.Meta.ResourceVersion
	return next.WithMeta(meta)
}

// patcher makes one JSON document of another.
type patcher func(doc []byte) ([]byte, error)

func readPatch(w http.ResponseWriter, r *http.Request) (patcher, error) {
	body, media, err := readBody(w, r, patchTypes...)
	switch {
	case err != nil:
		return nil, err
	case !json.Valid(body):
		return nil, malformedJSON(body)
	case media == string(types.JSONPatchType):
		return jsonPatch(body)
	}
	return func(doc []byte) ([]byte, error) { return jsonpatch.MergePatch(doc, body) }, nil
}

func jsonPatch(body []byte) (patcher, error) {
	ops, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, badRequest("body: must be a list of JSON patch operations: %v", err)
	}
	if len(ops) > maxPatchOps {
		return nil, badRequest("body: must have at most %d operations, found %d", maxPatchOps, len(ops))
	}
	return ops.Apply, nil
}
