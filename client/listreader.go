package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

var errItemTooLarge = fmt.Errorf("a value is larger than %d bytes", maxObjectAnswer)

// listReader decodes the list of a kind item by item and stops at the first mistake. So
// it holds no more than the objects that it was sent and one item.
type listReader struct {
	kind *schema.Kind
	what Selection
	opts store.ListOptions // that the server was asked for
	room *int              // the weight that is left

	list  ListWithStatus
	bound boundedReader
	dec   *json.Decoder
}

func (l *listReader) read(in io.Reader) error {
	l.bound = boundedReader{r: in, left: maxObjectAnswer, beyond: errItemTooLarge}
	l.dec = json.NewDecoder(&l.bound)
	var meta metav1.ListMeta
	err := l.inside('{', func() error {
		name, err := l.dec.Token()
		if err != nil {
			return err
		}
		switch name {
		case "metadata":
			return l.value(&meta)
		case "items":
			return l.items()
		}
		return l.value(&json.RawMessage{})
	})
	if err != nil {
		return err
	}
	if _, err := l.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	return l.end(meta)
}

// inside calls member for each member of an object or an array.
func (l *listReader) inside(open json.Delim, member func() error) error {
	token, err := l.dec.Token()
	if err != nil {
		return broken(err)
	}
	if token == nil && open == '[' {
		return nil
	}
	if token != open {
		return fmt.Errorf("it has %v, want %v", token, open)
	}
	for l.dec.More() {
		l.bound.left = maxObjectAnswer
		if err := member(); err != nil {
			return broken(err)
		}
	}
	_, err = l.dec.Token()
	return broken(err)
}

func (l *listReader) value(into any) error { return l.dec.Decode(into) }

// broken returns the error of a text that ends too early.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (l *listReader) items() error {
	return l.inside('[', func() error {
		if err := l.item(); err != nil {
			return fmt.Errorf("item %d: %w", len(l.list.Items), err)
		}
		return nil
	})
}

func (l *listReader) item() error {
	var w wireObject
	if err := l.value(&w); err != nil {
		return err
	}
	if w.Metadata.Name == "" {
		return errors.New("it has no name")
	}
	o, err := w.object(l.kind)
	if err != nil {
		return err
	}
	if err := within(store.Scope{Kind: l.kind, Namespace: l.what.Namespace, Name: l.what.name()}, o); err != nil {
		return err
	}
	if last := l.last(); last != nil && store.Compare(o, last) <= 0 {
		return fmt.Errorf("%s comes after %s, and must come before it", o.Key(), last.Key())
	}
	item := ObjectWithStatus{o, w.Status}
	if *l.room -= item.weight(); *l.room < 0 {
		return fmt.Errorf("%w: ask for pages, or for one kind", errTooHeavy)
	}
	l.list.Items = append(l.list.Items, item)
	return nil
}

// last returns the object after which the next item comes, nil for any.
func (l *listReader) last() *schema.Object {
	if n := len(l.list.Items); n > 0 {
		return l.list.Items[n-1].Object
	}
	if after := l.opts.After; after.Kind == l.kind.Kind {
		return &schema.Object{Kind: l.kind, Meta: metav1.ObjectMeta{Namespace: after.Namespace, Name: after.Name}}
	}
	return nil
}

// end checks the metadata of the list against its items.
func (l *listReader) end(meta metav1.ListMeta) (err error) {
	l.list.Remaining = remaining(meta)
	switch {
	case l.list.Remaining == 0:
	case len(l.list.Items) == 0:
		return errors.New("it has no items, and a continue as if more followed")
	case l.opts.Limit == 0:
		return errors.New("it has a continue, and no limit was asked for")
	}
	l.list.Revision, err = parseRevision(meta.ResourceVersion)
	return err
}
