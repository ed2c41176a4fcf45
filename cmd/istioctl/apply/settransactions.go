package apply

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// run does all steps, in as few transactions as the server takes, or in one with
// --atomic. After changes by other writers it plans the rest again, unless a file names
// a version of the object.
func (t *set) run(ctx context.Context) error {
	for try := 1; ; try++ {
		steps, err := t.plan(ctx)
		if err != nil {
			return t.stopped(t.Explain(ctx, err))
		}
		before := t.transactions
		failed, err := t.commit(ctx, steps)
		if err == nil {
			return nil
		}
		if t.transactions > before {
			try = 1 // Other writers did not keep it from going on.
		}
		if try == applyTries || !raced(failed, err) {
			return t.failed(ctx, failed, err)
		}
	}
}

// commit does steps in their order, and returns those of the transaction that failed.
func (t *set) commit(ctx context.Context, steps []step) (failed []step, err error) {
	for len(steps) > 0 {
		part, changes := t.next(steps)
		results, err := t.transact(ctx, changes)
		if t.splits(changes, err) {
			t.most = (len(changes) + 1) / 2
			continue
		}
		if err != nil {
			return changes, err
		}
		for _, one := range part {
			o := one.before
			if !one.idle {
				o, results = results[0], results[1:]
			}
			t.told[one.object.Key()] = true
			t.tell(one, o)
		}
		steps = steps[len(part):]
	}
	return nil, nil
}

// next returns the first steps that fit into a transaction, and those among them that
// change something.
func (t *set) next(steps []step) (part, changes []step) {
	for i, one := range steps {
		if one.idle {
			continue
		}
		if len(changes) == t.most && !t.atomic {
			return steps[:i], changes
		}
		changes = append(changes, one)
	}
	return steps, changes
}

func (t *set) transact(ctx context.Context, changes []step) ([]*schema.Object, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	results, err := t.client.Txn(ctx, opsOf(changes))
	if err == nil {
		t.transactions++
		t.written += len(changes)
	}
	return results, err
}

// splits reports whether changes are tried again in smaller transactions. That does not
// help if one object alone is too large.
func (t *set) splits(changes []step, err error) bool {
	_, _, one := blamed(err)
	return errors.Is(err, store.ErrTooLarge) && !one && !t.atomic && len(changes) > 1
}

func opsOf(steps []step) []store.Op {
	ops := make([]store.Op, len(steps))
	for i, one := range steps {
		ops[i] = one.Op
	}
	return ops
}

// raced reports whether another writer was faster with an object for which no file
// names a version.
func raced(steps []step, err error) bool {
	if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
		return false
	}
	i, _, ok := blamed(err)
	return ok && i < len(steps) && !steps[i].versioned()
}

// versioned reports whether the file names a version of the object.
func (s step) versioned() bool { return s.file != nil && s.file.Meta.ResourceVersion != "" }

// operationError matches the server's error about one operation.
var operationError = regexp.MustCompile(`(?s)^spec\.operations\[([0-9]+)\]: (.*)$`)

// blamed returns the operation that an error is about, if there is one.
func blamed(err error) (index int, text string, ok bool) {
	var e *store.Error
	if !errors.As(err, &e) {
		return 0, "", false
	}
	if said := operationError.FindStringSubmatch(e.Detail); said != nil {
		index, err := strconv.Atoi(said[1])
		return index, said[2], err == nil
	}
	return e.Index, cli.Reason(err), e.Key != (schema.Key{})
}

// failed returns an error about a transaction that names the object at fault, its
// position in the files, and what was done.
func (t *set) failed(ctx context.Context, steps []step, err error) error {
	if errors.Is(err, store.ErrOutcomeUnknown) {
		return t.unknown(t.Explain(ctx, err), len(steps))
	}
	i, text, ok := blamed(err)
	switch {
	case errors.Is(err, store.ErrTooLarge) && !ok && t.atomic:
		return fmt.Errorf("%s; nothing was done: without --atomic, %s are made in several transactions", t.Explain(ctx, err), cli.Count(len(steps), "change"))
	case !ok || i >= len(steps):
		return t.stopped(t.Explain(ctx, err))
	}
	one := steps[i]
	name := printer.Label(one.object) + printer.Where(one.object)
	if one.file == nil {
		return t.stopped(fmt.Sprintf("%s, which is to be pruned: %s", name, text))
	}
	if errors.Is(err, store.ErrConflict) && one.versioned() {
		text = cli.Reason(replaceHint(*one.file, err))
	}
	return t.stopped(fmt.Sprintf("%s: %s: %s", one.file.Place(), name, text))
}

// stopped returns an error that says what was done before it.
func (t *set) stopped(why string) error {
	if t.written == 0 {
		return fmt.Errorf("%s; nothing was done", why)
	}
	return fmt.Errorf("%s; %s before it were made (%s): run the same command again for the rest",
		why, cli.Count(t.written, "change"), cli.Count(t.transactions, "transaction"))
}

// unknown is stopped for a transaction that may have been done.
func (t *set) unknown(why string, changes int) error {
	if t.written == 0 && t.atomic {
		return fmt.Errorf("%s; all of it or nothing was done: run it again to be sure", why)
	}
	return fmt.Errorf("%s; %s before it were made, and the next %d were made together or not at all: run the same command again for the rest",
		why, cli.Count(t.written, "change"), changes)
}
