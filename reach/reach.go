package reach

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Options say what to ask.
type Options struct {
	From, To Selector
	// Proxies are those of the mesh; nil if they are not known. Then each workload is taken to have
	// one.
	Proxies *Fleet
	// May reports whether services and callers of a namespace may be shown; nil for all.
	May func(namespace string) bool
	// Limit is how many rows or cells the answer has at most; 0 for DefaultLimit. It is at most MostRows.
	Limit int
}

// The limits of an answer.
const (
	DefaultLimit = 500
	MostRows     = 10_000
	mostPairs    = 10_000_000
	mostTests    = 50_000_000
)

// Compiler answers questions about its last snapshot.
type Compiler interface {
	Ask(do func(*compile.Questions) error) error
}

// asked is a question that is being answered.
type asked struct {
	snapshot  *mesh.Snapshot
	settings  *mesh.Settings
	questions *compile.Questions
	from, to  Selector
	fleet     *Fleet
	may       func(namespace string) bool

	known      map[string]keyedTraits
	listeners  map[string]map[int]*ir.Listener // by the key of traits
	signatures map[string]int
	byAddress  map[int]bool // signatures of listeners that compare the address that is called
	shared     map[int]int  // classes by signature
	calls      map[callKey]explain.Call
	evaluator  explain.Calls
	accounts   map[string]int // callers by namespace
}

// Find answers a question about a snapshot, which must be the last one of the compiler. The answer is a
// matrix of namespaces if all callers and all services are selected, and else has rows. The error is
// ErrNothing, ErrTooMuch or that of ctx.
func Find(ctx context.Context, c Compiler, s *mesh.Snapshot, opts Options) (out *explain.Reach, err error) {
	err = c.Ask(func(q *compile.Questions) error {
		a := &asked{
			snapshot: s, settings: s.Settings, questions: q, from: opts.From, to: opts.To, fleet: opts.Proxies, may: opts.May,
			known: map[string]keyedTraits{}, listeners: map[string]map[int]*ir.Listener{}, signatures: map[string]int{},
			byAddress: map[int]bool{}, shared: map[int]int{}, calls: map[callKey]explain.Call{}, accounts: map[string]int{},
		}
		if a.may == nil {
			a.may = func(string) bool { return true }
		}
		out, err = a.answer(ctx, cmp.Or(opts.Limit, DefaultLimit))
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Revision, out.Assumed, out.Limited = s.Revision, opts.Proxies == nil, !opts.may("")
	return out, nil
}

func (o Options) may(namespace string) bool { return o.May == nil || o.May(namespace) }

func (a *asked) answer(ctx context.Context, limit int) (*explain.Reach, error) {
	callers, callees := a.callers(), a.callees()
	switch {
	case len(callers) == 0 && !a.from.all():
		return nil, fmt.Errorf("%w: no caller is as --from says", ErrNothing)
	case len(callees) == 0 && !a.to.all():
		return nil, fmt.Errorf("%w: no service is as --to says", ErrNothing)
	case len(callers)*len(callees) > mostPairs:
		return nil, fmt.Errorf("%w: %d callers and %d ports: ask about fewer with --from and --to", ErrTooMuch, len(callers), len(callees))
	}
	names := map[string]bool{}
	for _, c := range callers {
		if !names[c.name] {
			names[c.name] = true
			a.accounts[c.namespace]++
		}
	}
	if a.from.all() && a.to.all() {
		return a.matrix(ctx, callers, callees, limit)
	}
	return a.rows(ctx, callers, callees, limit)
}

// goOn returns an error if a question has taken too long.
func (a *asked) goOn(ctx context.Context) error {
	if a.evaluator.Spent > mostTests {
		return fmt.Errorf("%w: policies have too many conditions: ask about fewer services with --from and --to", ErrTooMuch)
	}
	return ctx.Err()
}

func (a *asked) rows(ctx context.Context, callers []*caller, callees []*callee, limit int) (*explain.Reach, error) {
	out := &explain.Reach{Rows: []explain.ReachRow{}}
	for _, to := range callees {
		if err := a.goOn(ctx); err != nil {
			return nil, err
		}
		rows := a.rowsOf(to, callers)
		kept := min(len(rows), limit-len(out.Rows))
		out.Rows = append(out.Rows, rows[:kept]...)
		out.Omitted += len(rows) - kept
	}
	return out, nil
}

func (a *asked) matrix(ctx context.Context, callers []*caller, callees []*callee, limit int) (*explain.Reach, error) {
	cells := map[[2]string]*explain.ReachCell{}
	for _, to := range callees {
		if err := a.goOn(ctx); err != nil {
			return nil, err
		}
		for _, from := range callers {
			id := [2]string{cmp.Or(from.namespace, explain.Outside), to.service.Namespace}
			cell := cells[id]
			if cell == nil {
				cell = &explain.ReachCell{From: id[0], To: id[1]}
				cells[id] = cell
			}
			one := a.outcome(from, to)
			switch one.Answer {
			case explain.CallAllowed:
				cell.Allowed++
			case explain.CallDenied:
				cell.Denied++
			default:
				cell.Depends++
			}
			if one.enforced != enforced {
				cell.Unenforced++
			}
		}
	}
	out := &explain.Reach{Matrix: []explain.ReachCell{}}
	for _, cell := range cells {
		out.Matrix = append(out.Matrix, *cell)
	}
	slices.SortFunc(out.Matrix, func(x, y explain.ReachCell) int {
		return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
	})
	kept := min(limit, len(out.Matrix))
	out.Matrix, out.Omitted = out.Matrix[:kept], len(out.Matrix)-kept
	return out, nil
}
