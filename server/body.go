package server

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
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = schema.MaxTextBytes

// objectTypes are the media types of an object in a request.
var objectTypes = openapi.ObjectTypes

// readBody returns the body of an admitted request and its media type, which must
// be one of the allowed ones.
func readBody(r *http.Request, allowed ...string) (body []byte, media string, err error) {
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

// bodyLength returns the length of an admitted body, in bytes.
func bodyLength(r *http.Request) int {
	if whole, ok := r.Body.(*wholeBody); ok {
		return len(whole.text)
	}
	return 0
}

func errTooLarge(limit int64) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the limit is %d bytes", limit))
}

// readObject decodes the object in a body, checks each field, and checks that the
// object matches the URL. The list holds warnings.
func (k *resource) readObject(r *http.Request) (*schema.Object, diag.List, error) {
	body, media, err := readBody(r, objectTypes...)
	if err != nil {
		return nil, nil, err
	}
	if media == wire.JSON.Names()[0] && !json.Valid(body) {
		return nil, nil, malformedJSON(body)
	}
	return k.decodeFor(r.Context(), body, k.target(r))
}

// mostTold bounds the errors reported for a body with many objects.
const mostTold = 100

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
		if left := len(docs) - i - 1; left > 0 && len(errs) >= mostTold {
			errs = append(errs, diag.Problem{
				Severity: diag.Error, Reason: diag.FieldInvalid, Code: diag.CodeOf(diag.FieldInvalid),
				Message: fmt.Sprintf("mend these problems first: %d documents behind them were not read", left),
			})
			break
		}
	}
	switch {
	case len(errs) > 0:
		return nil, refused(errs)
	case len(objects) == 0:
		return nil, wire.BadRequest("the body has no object")
	}
	return objects, nil
}

// malformedJSON returns an error that says where a text stops being JSON.
func malformedJSON(body []byte) error {
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

// decodeFor decodes the object that a request for target carries. The list holds
// warnings.
func (s *Server) decodeFor(ctx context.Context, text []byte, target schema.Key) (*schema.Object, diag.List, error) {
	obj, problems, err := s.decodeInTurn(ctx, text, schema.Options{Namespace: target.Namespace})
	if err != nil {
		return nil, nil, err
	}
	if obj == nil && target.Name != "" {
		obj, problems = s.decodeNext(ctx, text, target, problems)
	}
	return decoded(obj, problems, target)
}

// decodeNext decodes a refused text again, as the next state of a stored object. It
// tolerates violations that the stored object already has.
func (s *Server) decodeNext(ctx context.Context, text []byte, target schema.Key, problems diag.List) (*schema.Object, diag.List) {
	stored, err := s.opts.Reads.Get(ctx, target, store.ReadOptions{AtLeast: store.Any})
	if err != nil {
		return nil, problems // They say what is wrong by today's rules.
	}
	known := schema.Violations(stored)
	if len(known) == 0 {
		return nil, problems
	}
	return schema.Decode(text, schema.Options{Namespace: target.Namespace, Known: known})
}

// decodeMade is decodeFor for a text that the server made from current, which is
// nil if there is no such object. It drops the positions in problems, because no
// user wrote the text.
func decodeMade(text []byte, current *schema.Object, target schema.Key) (*schema.Object, diag.List, error) {
	if schema.Outgrown(text, current) {
		return nil, nil, wire.BadRequest("the object would have more than %d values", schema.MaxValues)
	}
	opts := schema.Options{Namespace: target.Namespace, Counted: true}
	obj, problems := schema.Decode(text, opts)
	if obj == nil && current != nil {
		opts.Known = schema.Violations(current)
		obj, problems = schema.Decode(text, opts)
	}
	for i := range problems {
		problems[i].Position = nil
	}
	return decoded(obj, problems, target)
}

func decoded(obj *schema.Object, problems diag.List, target schema.Key) (*schema.Object, diag.List, error) {
	if obj == nil {
		return nil, nil, disagreementOr(refused(problems), target, problems)
	}
	if err := agree(target, obj.Key().Ref()); err != nil {
		return nil, nil, err
	}
	return obj, problems.Warnings(), nil
}

// disagreementOr returns an error about a body that belongs to another URL, if it
// does, in preference to otherwise.
func disagreementOr(otherwise error, target schema.Key, problems diag.List) error {
	for _, p := range problems {
		if _, known := schema.KindByName(p.Object.Kind); known {
			if err := agree(target, p.Object); err != nil {
				return err
			}
		}
	}
	return otherwise
}

// agree checks that body and URL name the same object. It skips a field that either
// of them leaves out.
func agree(target schema.Key, body diag.Ref) error {
	for _, c := range []struct{ what, url, body string }{
		{"kind", target.Kind, body.Kind},
		{"metadata.namespace", target.Namespace, body.Namespace},
		{"metadata.name", target.Name, body.Name},
	} {
		if c.url != "" && c.body != "" && c.url != c.body {
			return wire.BadRequest("the URL and the body disagree on %s: the URL says %q, the body says %q", c.what, c.url, c.body)
		}
	}
	return nil
}

// readStrictly decodes a JSON text. Unlike encoding/json, it refuses a field that is given
// twice, or in other letters than its own.
func readStrictly(text []byte, into any) error {
	wrong, err := kjson.UnmarshalStrict(text, into)
	if err == nil && len(wrong) > 0 {
		err = wrong[0]
	}
	return err
}

// readYAMLStrictly is readStrictly for a text in YAML or JSON, which it returns as JSON.
func readYAMLStrictly(body []byte, into any) (text []byte, err error) {
	if text, err = jsonOfYAML(body); err != nil {
		return nil, err
	}
	return text, readStrictly(text, into)
}

// jsonOfYAML converts a text in YAML or JSON to JSON. It refuses aliases that would
// make the JSON much longer.
func jsonOfYAML(body []byte) ([]byte, error) {
	if err := schema.CheckAliases(body); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSONStrict(body)
}
