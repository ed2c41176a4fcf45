package past

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Revision is a revision, or 0 if none was given.
type Revision int64

func (f *Revision) String() string {
	if *f == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*f), 10)
}

func (f *Revision) Type() string { return "REVISION" }

func (f *Revision) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return errors.New("must be a revision as 'istioctl history' shows them, a positive number")
	}
	*f = Revision(n)
	return nil
}

// Clock returns the newest revision.
type Clock interface {
	Revision(ctx context.Context) (int64, error)
}

// Reached refuses a revision in the future, because it would show the present state.
func Reached(ctx context.Context, c Clock, revision int64) error {
	if revision == 0 {
		return nil
	}
	newest, err := c.Revision(ctx)
	if err == nil && revision > newest {
		err = fmt.Errorf("revision %d is not reached yet: the newest is %d", revision, newest)
	}
	return err
}

// Historian returns the versions of an object that the server knows, the newest first.
type Historian interface {
	History(ctx context.Context, key schema.Key) ([]store.Version, error)
}

// Versions returns the versions of an object that the server knows. It returns an error
// if there are none.
func Versions(ctx context.Context, s *cli.Session, h Historian, key schema.Key) ([]store.Version, error) {
	versions, err := h.History(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%s/%s is not in namespace %s, and was not as far as the server knows",
			strings.ToLower(key.Kind), key.Name, key.Namespace)
	}
	return versions, s.Fail(ctx, err)
}
