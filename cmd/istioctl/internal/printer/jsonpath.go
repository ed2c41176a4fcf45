package printer

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/internal/terminal"
)

// newJSONPath returns a printer of what a template such as {.items[*].metadata.name}
// finds, followed by a newline.
func newJSONPath(template string) (printers.ResourcePrinter, error) {
	if template == "" {
		return nil, cli.Usagef("-o jsonpath= needs a template, such as jsonpath={.metadata.name}")
	}
	p, err := printers.NewJSONPathPrinter(relaxed(template))
	if err != nil {
		return nil, cli.Usagef("-o jsonpath=%s: %w", template, err)
	}
	p.AllowMissingKeys(true)
	p.EnableJSONOutput(false)
	return linePrinter{p}, nil
}

// linePrinter adds a newline after another printer's output, because templates rarely
// have one.
type linePrinter struct{ printers.ResourcePrinter }

func (l linePrinter) PrintObj(obj runtime.Object, w io.Writer) error {
	w = cli.ForProgram(w)
	if err := l.ResourcePrinter.PrintObj(obj, w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

var barePath = regexp.MustCompile(`^(?:\{\.?([^{}]+)\}|\.?([^{}]+))$`)

// relaxed completes a path without braces or a leading dot, as kubectl does.
func relaxed(path string) string {
	if m := barePath.FindStringSubmatch(path); m != nil {
		return "{." + m[1] + m[2] + "}"
	}
	return path
}

// customColumns prints a row of paths for every object.
type customColumns struct {
	headers []string
	paths   []*jsonpath.JSONPath
	printed bool
}

func newCustomColumns(text string) (printers.ResourcePrinter, error) {
	c := &customColumns{}
	for _, column := range strings.Split(text, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" || path == "" {
			return nil, cli.Usagef("-o custom-columns=%s: want HEADER:PATH, such as NAME:.metadata.name, found %q", text, column)
		}
		p := jsonpath.New(header).AllowMissingKeys(true)
		if err := p.Parse(relaxed(path)); err != nil {
			return nil, cli.Usagef("-o custom-columns=%s: %w", text, err)
		}
		c.headers = append(c.headers, header)
		c.paths = append(c.paths, p)
	}
	return c, nil
}

func (c *customColumns) PrintObj(obj runtime.Object, w io.Writer) error {
	tab := printers.GetNewTabWriter(w)
	if !c.printed {
		c.printed = true
		fmt.Fprintln(tab, strings.Join(c.headers, "\t"))
	}
	items := []unstructured.Unstructured{}
	switch o := obj.(type) {
	case *unstructured.UnstructuredList:
		items = o.Items
	case *unstructured.Unstructured:
		items = append(items, *o)
	}
	for _, item := range items {
		cells, err := c.row(item.Object)
		if err != nil {
			return err
		}
		fmt.Fprintln(tab, strings.Join(cells, "\t"))
	}
	return tab.Flush()
}

func (c *customColumns) row(object map[string]any) ([]string, error) {
	cells := make([]string, len(c.paths))
	for i, path := range c.paths {
		results, err := path.FindResults(object)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.headers[i], err)
		}
		var found []string
		for _, result := range results {
			for _, v := range result {
				found = append(found, fmt.Sprint(v.Interface()))
			}
		}
		if cells[i] = terminal.Line(strings.Join(found, ",")); cells[i] == "" {
			cells[i] = "<none>"
		}
	}
	return cells, nil
}
