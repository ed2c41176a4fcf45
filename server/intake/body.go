package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// MaxBody bounds the body of a request, in bytes.
const MaxBody = schema.MaxTextBytes

// Decoder reads the bodies of requests within a memory limit, and decodes the objects in
// them. Large objects wait for their turn. It is safe for concurrent use.
type Decoder struct {
	long   *admission.Long
	reads  store.Reader
	memory *writeMemory
}

// New returns a Decoder with lineBytes bytes of memory for small writes and as much for
// large ones. reads has the stored objects that writes change.
func New(long *admission.Long, reads store.Reader, lineBytes int64) *Decoder {
	return &Decoder{long: long, reads: reads, memory: newWriteMemory(lineBytes)}
}

// ReadBody returns the body of an admitted request and its media type, which must
// be one of the allowed ones.
func ReadBody(r *http.Request, allowed ...string) (body []byte, media string, err error) {
	if media, err = wire.BodyType(r, allowed...); err != nil {
		return nil, "", err
	}
	whole, ok := r.Body.(*wholeBody)
	if !ok {
		return nil, "", errors.New("the request was not admitted")
	}
	if wire.ClaimsASCII(r) {
		if at := bytes.IndexFunc(whole.text, func(c rune) bool { return c > unicode.MaxASCII }); at >= 0 {
			return nil, "", wire.BadRequest("body: its Content-Type says charset us-ascii, and byte %d is beyond ASCII", at+1)
		}
	}
	return whole.text, media, nil
}

// BodyLength returns the length of an admitted body, in bytes.
func BodyLength(r *http.Request) int {
	if whole, ok := r.Body.(*wholeBody); ok {
		return len(whole.text)
	}
	return 0
}

// ErrTooLarge is the Status 413 of a body of more than limit bytes.
func ErrTooLarge(limit int64) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the limit is %d bytes", limit))
}

// MaxErrors bounds the errors reported for a body with many objects.
const MaxErrors = 100

// objectsIn decodes all documents of a text and the items of Lists, until ctx ends.
// It returns at least one object and at most store.MaxTxnOps.
func objectsIn(ctx context.Context, text []byte, namespace string) ([]*schema.Object, error) {
	var objects []*schema.Object
	var errs diag.List
	docs := schema.Split(text, "")
	for i, doc := range docs {
		found, problems, err := doc.Objects(ctx, namespace)
		if err != nil {
			return nil, err
		}
		objects, errs = append(objects, found...), append(errs, problems.Errors()...)
		if len(objects) > store.MaxTxnOps {
			return nil, wire.BadRequest("the body must have at most %d objects", store.MaxTxnOps)
		}
		if left := len(docs) - i - 1; left > 0 && len(errs) >= MaxErrors {
			errs = append(errs, diag.Problem{
				Severity: diag.Error, Reason: diag.FieldInvalid, Code: diag.CodeOf(diag.FieldInvalid),
				Message: fmt.Sprintf("fix these problems first: %d documents behind them were not read", left),
			})
			break
		}
	}
	switch {
	case len(errs) > 0:
		return nil, wire.Refused(errs)
	case len(objects) == 0:
		return nil, wire.BadRequest("the body has no object")
	}
	return objects, nil
}

// MalformedJSON returns an error that says where a text stops being JSON.
func MalformedJSON(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return wire.BadRequest("the body is empty")
	}
	var any json.RawMessage
	err := json.Unmarshal(body, &any)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return wire.BadRequest("body: %v", err)
	}
	before := string(body[:min(syntax.Offset, int64(len(body)))])
	line := 1 + strings.Count(before, "\n")
	return wire.BadRequest("body is not JSON: line %d, column %d: %v (for YAML, send Content-Type: application/yaml)",
		line, len(before)-strings.LastIndexByte(before, '\n')-1, err)
}

// ReadStrictly decodes a JSON text. Unlike encoding/json, it refuses a repeated field, and
// a field whose name differs in case.
func ReadStrictly(text []byte, into any) error {
	wrong, err := kjson.UnmarshalStrict(text, into)
	if err == nil && len(wrong) > 0 {
		err = wrong[0]
	}
	return err
}

// ReadYAMLStrictly is ReadStrictly for a text in YAML or JSON, which it returns as JSON.
func ReadYAMLStrictly(body []byte, into any) (text []byte, err error) {
	if text, err = JSONOfYAML(body); err != nil {
		return nil, err
	}
	return text, ReadStrictly(text, into)
}

// JSONOfYAML converts a text in YAML or JSON to JSON. It refuses aliases that would
// make the JSON much longer.
func JSONOfYAML(body []byte) ([]byte, error) {
	if err := schema.CheckAliases(body); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSONStrict(body)
}
