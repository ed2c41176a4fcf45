package schema

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// Document is one document of a file: its text and the line where it starts.
type Document struct {
	Text []byte
	File string
	Line int // of the first line of Text, from 1
}

// Split cuts a text into its YAML documents. A JSON text is one document. Empty
// documents, and those of comments only, are left out. Split parses no more than
// necessary.
func Split(text []byte, file string) []Document {
	var docs []Document
	start, line := 0, 1
	from := line
	add := func(end int) {
		if part := text[start:end]; !isBlank(part) {
			docs = append(docs, Document{Text: part, File: file, Line: from})
		}
	}
	for at := 0; at < len(text); line++ {
		next := at + 1 + bytes.IndexByte(text[at:], '\n')
		if next == at {
			next = len(text)
		}
		if marker := text[at:next]; isMarker(marker) {
			add(at)
			// The text behind the marker belongs to the document.
			if start, from = at, line; isBlank(marker[3:]) {
				start, from = next, line+1
			}
		}
		at = next
	}
	add(len(text))
	return docs
}

// isMarker reports whether a line ends a document, wherever it occurs.
func isMarker(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || strings.IndexByte(" \t\r\n", line[3]) >= 0
}

// isBlank reports whether a text has no content except spaces, comments and
// directives.
func isBlank(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimLeft(bytes.TrimPrefix(line, []byte("\ufeff")), " \t\r\n")
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// single returns the one document in a text.
func single(text []byte, opts Options) (Document, diag.List) {
	whole := Document{Text: text, File: opts.File, Line: 1}
	if list := whole.tooLong(opts.Counted); list != nil {
		return whole, list
	}
	switch docs := Split(text, opts.File); len(docs) {
	case 1:
		return docs[0], nil
	case 0:
		return whole, whole.malformed(0, 0, "there is no object here: the text is empty")
	default:
		second := docs[1].Line
		return whole, whole.malformed(second, 1, fmt.Sprintf("one object is wanted, and there are %d documents; the second begins here", len(docs)))
	}
}

// Objects decodes a document, as Decode does with namespace as the default
// namespace, and unpacks a "kind: List" into its items. Positions count from the
// start of the file. Valid objects are returned beside the problems of invalid
// ones. After a hundred errors Objects reads no more items of a List, and the last
// problem says so. MaxTextBytes applies to each object; the caller limits the
// length of a List. The error is ctx's; then the other results are nil.
func (d Document) Objects(ctx context.Context, namespace string) ([]*Object, diag.List, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	t, list := d.parse()
	if list.Err() != nil {
		return nil, list, nil
	}
	items, isList := listItems(t.value)
	if !isList {
		if list := d.tooLong(false); list != nil {
			return nil, list, nil
		}
		o, list := t.object(t.value, "", namespace)
		return slices.DeleteFunc([]*Object{o}, func(o *Object) bool { return o == nil }), list, nil
	}
	return t.items(ctx, items, list, namespace)
}

// items decodes the objects of a List, and appends their problems to list.
func (t *tree) items(ctx context.Context, items []any, list diag.List, namespace string) ([]*Object, diag.List, error) {
	var objects []*Object
	errs := 0
	for i, item := range items {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if errs >= mostProblems {
			return objects, append(list, t.unreadItems(i, len(items))), nil
		}
		o, found := t.object(item, fmt.Sprintf("items[%d]", i), namespace)
		if o != nil {
			objects = append(objects, o)
		}
		list = append(list, found...)
		errs += len(found.Errors())
	}
	return objects, list, nil
}

// unreadItems reports that a List has items that were not read.
func (t *tree) unreadItems(next, all int) diag.Problem {
	p := diag.Problem{
		Severity: diag.Error, Reason: diag.FieldInvalid, Code: diag.CodeOf(diag.FieldInvalid), Field: "items",
		Message: fmt.Sprintf("%d items were read, and they have more problems than are listed for one text: fix them first; %d items were not read", next, all-next),
	}
	p.Position = t.locate("", p)
	return p
}

// listItems returns the items of a List, or of a RouteRuleList and the like.
func listItems(v any) ([]any, bool) {
	top, _ := v.(map[string]any)
	name, _ := top["kind"].(string)
	element, isList := strings.CutSuffix(name, "List")
	if _, known := KindByName(element); !isList || element != "" && !known {
		return nil, false
	}
	items, ok := top["items"].([]any)
	return items, ok || top["items"] == nil
}
