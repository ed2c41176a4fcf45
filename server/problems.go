package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// problemsPath is where one asks what could not be honoured.
const problemsPath = "/debug/problems"

var problemParams = params("resourceVersion", "local", "api")

// publishTimeout is how long the problems wait for the configuration of the
// revision that is asked for. It is shorter than what clients wait.
const publishTimeout = 10 * time.Second

// problems answers what the published configuration could not honour, and the
// revision that it was compiled from. As in a list, resourceVersion says how
// fresh that must be: unset it is the newest, 0 whatever is at hand, anything
// else not older than that. What proxies of other replicas refuse is among it, unless
// local=true asks for those of this one. With api=v1 it is also what Envoys of that API
// would lose, whether or not there are any, for all that this replica knows of proxies.
func (s *Server) problems(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if err := checkParams(q, problemParams); err != nil {
		return err
	}
	atLeast, err := atLeastParam(q)
	if err != nil {
		return err
	}
	local, err := s.isLocal(r, q)
	if err != nil {
		return err
	}
	inV1, err := asksV1(q)
	if err != nil {
		return err
	}
	if err := s.awaitPublished(r.Context(), atLeast); err != nil {
		return err
	}
	var out reported
	report := s.opts.Discovery.Report()
	if inV1 {
		lost, left, err := s.opts.Discovery.LostInV1(r.Context())
		if err != nil {
			return notCompiled(err)
		}
		report, out.NotLookedAt = report.With(lost), left
	}
	if !local {
		report = report.With(s.problemsOfOthers(w, r, q))
	}
	out.Revision, out.Problems = report.Revision, append(diag.List{}, report.Problems...)
	return writeJSON(w, r, out)
}

// reported is a Report as it is told.
type reported struct {
	Revision int64     `json:"revision"`
	Problems diag.List `json:"problems"`
	// NotLookedAt are kinds of proxies that were too many to find out what they lose.
	NotLookedAt int `json:"notLookedAt,omitempty"`
}

// asksV1 reads whether one wants to know what Envoys of the v1 API would lose: the v3
// API has all that there is to lose.
func asksV1(q url.Values) (bool, error) {
	switch api := q.Get("api"); api {
	case "":
		return false, nil
	case "v1":
		return true, nil
	default:
		return false, badRequest("api: want v1 or nothing, found %q", api)
	}
}

func (s *Server) problemsOfOthers(w http.ResponseWriter, r *http.Request, q url.Values) (all diag.List) {
	ctx, cancel := context.WithTimeout(r.Context(), publishTimeout+peerTimeout)
	defer cancel()
	var mu sync.Mutex
	s.askOthers(ctx, w, "problems", func(of Replica) error {
		var found reported
		_, err := askPeer(ctx, of, []string{problemsPath}, withoutAPI(q), "", &found)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found.Problems...)
		return err
	})
	return all
}

// withoutAPI is what is asked of other replicas: the objects are the same there, and
// what is lost of them is found once.
func withoutAPI(q url.Values) url.Values {
	q = maps.Clone(q)
	q.Del("api")
	return q
}

// awaitPublished waits until the objects as fresh as wanted, in the sense of
// store.ReadOptions, have been compiled.
func (s *Server) awaitPublished(ctx context.Context, atLeast int64) error {
	if atLeast == store.Any {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	// A list of nothing brings what is read here up to the revision.
	list, err := s.opts.Reads.List(ctx, nothing, store.ListOptions{AtLeast: atLeast})
	if err == nil {
		atLeast = cmp.Or(atLeast, list.Revision)
		err = s.opts.Discovery.Await(ctx, atLeast)
	}
	if err == nil || ctx.Err() == nil {
		return err
	}
	wanted := "the newest revision"
	if atLeast > 0 {
		wanted = "revision " + strconv.FormatInt(atLeast, 10)
	}
	return &store.Error{Kind: store.ErrFuture, Detail: fmt.Sprintf(
		"the configuration of %s has not been compiled in time: that of revision %d is in force; ask with resourceVersion=0 for its problems",
		wanted, s.opts.Discovery.Revision())}
}

// nothing is a scope that no object is in, for no namespace has such a name.
var nothing = store.Scope{Kind: schema.Kinds()[0], Namespace: "-"}
