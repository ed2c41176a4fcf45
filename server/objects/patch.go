package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// Bounds of one patch. An object is small; a client that needs more can send a PUT.
// An object also has fewer levels, and the library reads the content of each level
// again for every level around it.
const (
	maxPatchOps   = 1000
	maxPatchDepth = 128
)

func init() {
	// "copy" operations can double a document again and again. The library has this
	// bound only for a whole process.
	jsonpatch.AccumulatedCopySizeLimit = schema.MaxObjectBytes
}

// patchTypes are the media types of patches of all kinds that state changes.
var patchTypes = []string{string(types.MergePatchType), string(types.JSONPatchType)}

// patchOps are the operations of RFC 6902.
var patchOps = []string{"add", "copy", "move", "remove", "replace", "test"}

// patch answers PATCH on an object.
func (k *resource) patch(w http.ResponseWriter, r *http.Request) error {
	f, writes, err := k.beginWrite(r, patchParams)
	if err != nil {
		return err
	}
	body, media, err := intake.ReadBody(r, slices.Concat(patchTypesOf(k.Kind), applyTypes)...)
	if err != nil {
		return err
	}
	if err := k.bodies.AwaitLarge(r.Context(), k.Target(r), len(body)); err != nil {
		return err
	}
	switch {
	case media == applyTypes[1] && !json.Valid(body):
		return intake.MalformedJSON(body)
	case slices.Contains(applyTypes, media):
		return k.apply(w, r, f, writes, body)
	case wire.Query(r).Has("force"):
		return wire.BadRequest("query parameter force: is for %s", applyTypes[0])
	}
	change, err := k.patcherOf(body, media)
	if err != nil {
		return err
	}
	m, err := ifMatch(r)
	if err != nil {
		return err
	}
	var warnings diag.List
	stored, err := m.operate(r.Context(), writes, store.Op{Verb: store.OpUpdate, Key: k.Target(r), Change: k.bodies.Counted(change.Of(k.Version, &warnings))})
	if err != nil {
		return err
	}
	k.WarnOf(w, r, warnings, Became(stored))
	return k.writeObject(w, r, http.StatusOK, f, stored)
}

// Patcher returns the patched JSON document, or the problem of a patch that does
// not fit. The field of the problem is a field of the patch.
type Patcher func(doc []byte) ([]byte, *diag.Problem)

// Of returns the store.Change of a patch of objects in a version. It decodes the
// result as strictly as a whole object. warnings receives the warnings of the last
// attempt.
func (p Patcher) Of(version string, warnings *diag.List) store.Change {
	return func(current *schema.Object) (next *schema.Object, err error) {
		text, misfit := p(current.JSONIn(version))
		if misfit != nil {
			return nil, &store.Error{Kind: store.ErrInvalid, Key: current.Key(), Problems: diag.List{*misfit}}
		}
		next, *warnings, err = intake.DecodeMade(text, current, current.Key())
		return next, err
	}
}

// patcherOf returns the Patcher of a patch of an object of the kind.
func (k *resource) patcherOf(body []byte, media string) (Patcher, error) {
	if media != string(types.StrategicMergePatchType) {
		return PatcherOf(body, media)
	}
	if err := checkPatch(body); err != nil {
		return nil, err
	}
	if err := isObject(body); err != nil {
		return nil, err
	}
	return strategicPatch(body, k.Kind), nil
}

// PatcherOf returns the Patcher of a patch. Its errors are for the client.
func PatcherOf(body []byte, media string) (Patcher, error) {
	if !slices.Contains(patchTypes, media) {
		return nil, wire.BadRequest("patchType: must be %s, found %q", strings.Join(patchTypes, " or "), media)
	}
	if err := checkPatch(body); err != nil {
		return nil, err
	}
	if media == string(types.JSONPatchType) {
		return jsonPatch(body)
	}
	if err := isObject(body); err != nil {
		return nil, err
	}
	return mergePatch(body), nil
}

func isObject(body []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return wire.BadRequest(`body: a merge patch must be an object, such as {"spec": {"precedence": 2}}`)
	}
	return nil
}

// checkPatch refuses the text of a patch that is not JSON, or costs too much.
func checkPatch(body []byte) error {
	switch {
	case !json.Valid(body):
		return intake.MalformedJSON(body)
	case schema.TooMany(body):
		return wire.BadRequest("body: must have at most %d values", schema.MaxValues)
	case intake.OutlineOf(body).Levels > maxPatchDepth:
		return wire.BadRequest("body: must be nested at most %d levels deep", maxPatchDepth)
	}
	return checkUnique(body)
}

// checkUnique refuses a duplicate field, of which only the last would count.
func checkUnique(body []byte) error {
	var patch any
	twice, err := kjson.UnmarshalStrict(body, &patch)
	if err != nil || len(twice) == 0 {
		return nil // The code that uses the body reports that it cannot be read.
	}
	if at, ok := twice[0].(kjson.FieldError); ok {
		return wire.BadRequest("%s: is given twice", at.FieldPath())
	}
	return wire.BadRequest("body: %v", twice[0])
}

func mergePatch(body []byte) Patcher {
	return func(doc []byte) ([]byte, *diag.Problem) {
		out, err := jsonpatch.MergePatch(doc, body)
		if err != nil {
			return nil, misfit("", "", err)
		}
		return out, nil
	}
}

func jsonPatch(body []byte) (Patcher, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		return nil, wire.BadRequest("body: must be a list of JSON patch operations")
	}
	ops, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, wire.BadRequest(`body: must be a list of JSON patch operations, such as {"op": "remove", "path": "/spec/precedence"}`)
	}
	for i, op := range ops {
		if err := checkPatchOp(op); err != nil {
			return nil, wire.BadRequest("[%d].%v", i, err)
		}
	}
	if len(ops) > maxPatchOps {
		return nil, wire.BadRequest("body: must have at most %d operations, found %d", maxPatchOps, len(ops))
	}
	return func(doc []byte) ([]byte, *diag.Problem) {
		out, err := ops.Apply(doc)
		if err != nil {
			i := firstMisfit(ops, doc)
			path, _ := ops[i].Path()
			return nil, misfit(fmt.Sprintf("[%d].path", i), fmt.Sprintf("operation %d (%s %s): ", i, ops[i].Kind(), path), err)
		}
		return out, nil
	}, nil
}

// checkPatchOp refuses anything that is not an operation of RFC 6902. The library
// treats a missing value as null, which removes a field, and ignores the beginning
// of a path without a leading slash.
func checkPatchOp(op jsonpatch.Operation) error {
	kind := op.Kind()
	if !slices.Contains(patchOps, kind) {
		return fmt.Errorf("op: must be %s, found %q", strings.Join(patchOps, ", "), kind)
	}
	if err := checkPointer(op, "path"); err != nil {
		return err
	}
	switch kind {
	case "copy", "move":
		return checkPointer(op, "from")
	case "remove":
		return nil
	}
	if _, given := op["value"]; !given {
		return fmt.Errorf("value: must be given to %s, if only as null", kind)
	}
	return nil
}

// checkPointer requires a JSON pointer in a field of an operation.
func checkPointer(op jsonpatch.Operation, field string) error {
	var pointer *string
	if text := op[field]; text == nil || json.Unmarshal(*text, &pointer) != nil || pointer == nil {
		return fmt.Errorf("%s: must be given, a text such as /spec/precedence", field)
	}
	if *pointer != "" && !strings.HasPrefix(*pointer, "/") {
		return fmt.Errorf("%s: must begin with a slash, as in /spec/precedence, found %q", field, *pointer)
	}
	return nil
}

func misfit(field, where string, err error) *diag.Problem {
	return &diag.Problem{
		Severity: diag.Error, Reason: diag.FieldInvalid, Field: field,
		Message: "the patch does not fit: " + where + err.Error(),
	}
}

// firstMisfit returns the index of the operation that fails, which the library does
// not report.
func firstMisfit(ops jsonpatch.Patch, doc []byte) int {
	return sort.Search(len(ops)-1, func(i int) bool {
		_, err := ops[:i+1].Apply(doc)
		return err != nil
	})
}
