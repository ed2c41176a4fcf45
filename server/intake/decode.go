package intake

import (
	"context"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// DecodeFor decodes the object that a request for target carries. The list holds
// warnings.
func (d *Decoder) DecodeFor(ctx context.Context, text []byte, target schema.Key) (*schema.Object, diag.List, error) {
	obj, problems, err := d.decodeInTurn(ctx, text, schema.Options{Namespace: target.Namespace})
	if err != nil {
		return nil, nil, err
	}
	if obj == nil && target.Name != "" {
		obj, problems = d.DecodeNext(ctx, text, target, problems)
	}
	return decoded(obj, problems, target)
}

// DecodeNext decodes a refused text again, as the next state of a stored object. It
// tolerates violations that the stored object already has.
func (d *Decoder) DecodeNext(ctx context.Context, text []byte, target schema.Key, problems diag.List) (*schema.Object, diag.List) {
	stored, err := d.reads.Get(ctx, target, store.ReadOptions{AtLeast: store.Any})
	if err != nil {
		return nil, problems // They say what is wrong by today'd rules.
	}
	known := schema.Violations(stored)
	if len(known) == 0 {
		return nil, problems
	}
	return schema.Decode(text, schema.Options{Namespace: target.Namespace, Known: known})
}

// DecodeMade is DecodeFor for a text that the server made from current, which is
// nil if there is no such object. It drops the positions in problems, because no
// user wrote the text.
func DecodeMade(text []byte, current *schema.Object, target schema.Key) (*schema.Object, diag.List, error) {
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
		return nil, nil, DisagreementOr(wire.Refused(problems), target, problems)
	}
	if err := Agree(target, obj.Key().Ref()); err != nil {
		return nil, nil, err
	}
	return obj, problems.Warnings(), nil
}

// DisagreementOr returns an error if the body belongs to another URL. If not, it returns
// otherwise.
func DisagreementOr(otherwise error, target schema.Key, problems diag.List) error {
	for _, p := range problems {
		if _, known := schema.KindByName(p.Object.Kind); known {
			if err := Agree(target, p.Object); err != nil {
				return err
			}
		}
	}
	return otherwise
}

// Agree checks that body and URL name the same object. It skips a field that either
// of them leaves out.
func Agree(target schema.Key, body diag.Ref) error {
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
