package printer

import (
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

// namePrinter prints KIND/NAME, one object a line. A name may have a newline if its kind has
// PathNames, so it is escaped: a program reads the lines.
type namePrinter struct{ printers.NamePrinter }

func (p *namePrinter) PrintObj(obj runtime.Object, w io.Writer) error {
	if meta.IsListType(obj) {
		return meta.EachListItem(obj, func(o runtime.Object) error { return p.PrintObj(o, w) })
	}
	// The object was made for this output alone.
	if o, err := meta.Accessor(obj); err == nil {
		o.SetName(terminal.Line(o.GetName()))
	}
	return p.NamePrinter.PrintObj(obj, w)
}
