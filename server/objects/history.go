package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

const (
	// changesPath lists the changes since a revision.
	changesPath = "/apis/" + wire.RegistryVersion + "/changes"
)

var (
	historyParams = wire.Params("resourceVersion")
	changesParams = wire.Params("since", "kind", "namespace", "name", "limit", "continue")
)

// historyAnswer lists versions, newest first.
type historyAnswer struct {
	metav1.TypeMeta `json:",inline"`
	Items           []objectVersion `json:"items"`
}

// objectVersion is one version of an object in an answer.
type objectVersion struct {
	Revision string `json:"revision"`
	// Verb and the following fields describe the change that began the version. They
	// are empty if that is no longer known.
	Verb        store.Verb `json:"verb,omitempty"`
	Time        *time.Time `json:"time,omitempty"`
	User        string     `json:"user,omitempty"`
	UserAgent   string     `json:"userAgent,omitempty"`
	Transaction string     `json:"transaction,omitempty"`
	// Object is the content. It is empty after a delete, and if the content was lost.
	Object json.RawMessage `json:"object,omitempty"`
	Lost   bool            `json:"lost,omitempty"`
	// AbsentSince is the revision from which on the object is known not to have existed:
	// after a delete, or before the oldest version.
	AbsentSince string `json:"absentSince,omitempty"`
}

func (k *resource) objectVersion(v store.Version) objectVersion {
	out := objectVersion{Revision: strconv.FormatInt(v.Revision, 10), Lost: v.Lost}
	if v.Object != nil {
		out.Object = k.JSON(v.Object)
	}
	if v.AbsentSince > 0 {
		out.AbsentSince = strconv.FormatInt(v.AbsentSince, 10)
	}
	if c := v.Change; c != nil {
		out.Verb, out.User, out.UserAgent, out.Transaction = c.Verb, c.Author.User, c.Author.UserAgent, c.Transaction
		if !c.Time.IsZero() {
			out.Time = &c.Time
		}
	}
	return out
}

func jsonOf(obj *schema.Object) json.RawMessage {
	if obj == nil {
		return nil
	}
	return obj.JSON()
}

// history answers with the known versions of an object, newest first. With
// resourceVersion=0 any state will do, so a store without a majority answers too.
func (k *resource) history(w http.ResponseWriter, r *http.Request) error {
	q := wire.Query(r)
	if err := wire.CheckParams(q, historyParams); err != nil {
		return err
	}
	atLeast, err := wire.AtLeastParam(q)
	switch {
	case err != nil:
		return err
	case atLeast > 0:
		return wire.BadParam(q, "resourceVersion", "0, or left out")
	}
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML)
	if err != nil {
		return err
	}
	var body []byte
	done, err := k.largeReads.Read(r.Context(), historyOf(k.Target(r)), func(ctx context.Context) (int, error) {
		body, err = k.historyText(ctx, k.Target(r), atLeast == store.Any)
		return len(body), err
	})
	if err != nil {
		return err
	}
	defer done()
	defer k.largeReads.Sending(w)()
	return answer.WriteText(w, http.StatusOK, f, body)
}

func (k *resource) versions(ctx context.Context, key schema.Key, atHand bool) ([]store.Version, error) {
	if atHand {
		return store.HistoryAtHand(ctx, k.opts.Store, key)
	}
	if err := store.CheckAnswers(k.opts.Reads); err != nil {
		return nil, err
	}
	return k.opts.Store.History(ctx, key)
}

// historyOf returns the name of an object's history for LargeReads.
func historyOf(key schema.Key) string { return "history " + key.String() }

// historyText returns the answer with the versions of an object, as JSON.
func (k *resource) historyText(ctx context.Context, key schema.Key, atHand bool) ([]byte, error) {
	versions, err := k.versions(ctx, key, atHand)
	if err != nil {
		return nil, err
	}
	answer := historyAnswer{metav1.TypeMeta{APIVersion: wire.RegistryVersion, Kind: "History"}, []objectVersion{}}
	for _, v := range versions {
		answer.Items = append(answer.Items, k.objectVersion(v))
	}
	return json.Marshal(answer)
}

// atRevision answers with an object as it was at a revision.
func (k *resource) atRevision(w http.ResponseWriter, r *http.Request) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML)
	if err != nil {
		return err
	}
	if err := wire.CheckParams(wire.Query(r), historyParams); err != nil {
		return err
	}
	revision, err := strconv.ParseInt(wire.PathParam(r, "revision"), 10, 64)
	if err != nil || revision < 1 {
		return wire.BadRequest("revision: must be a resourceVersion, found %q", wire.PathParam(r, "revision"))
	}
	var obj *schema.Object
	done, err := k.largeReads.Read(r.Context(), historyOf(k.Target(r)), func(ctx context.Context) (int, error) {
		records := &measuredHistory{Historian: k.opts.Store}
		obj, err = store.At(ctx, records, k.Target(r), revision)
		return records.size, err
	})
	if err != nil {
		return err
	}
	defer done()
	defer k.largeReads.Sending(w)()
	return answer.WriteText(w, http.StatusOK, f, k.JSON(obj))
}

type changesAnswer struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ListMeta `json:"metadata"`
	Items           []difference    `json:"items"`
}

// difference is how an object has changed since a revision.
type difference struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Then      json.RawMessage `json:"then,omitempty"`
	Now       json.RawMessage `json:"now,omitempty"`
	// Unreadable replaces Now if the stored value cannot be read.
	Unreadable *unreadableValue `json:"unreadable,omitempty"`
	// Lost means that Then is not known: Unreadable was already stored then.
	Lost bool `json:"lost,omitempty"`
	// Revision is the revision of the newest change.
	Revision string `json:"revision"`
}

// unreadableValue describes a stored value that is not a valid object.
type unreadableValue struct {
	Revision string `json:"revision"`
	Why      string `json:"why"`
}

func differenceOf(d store.Difference) difference {
	out := difference{
		Kind: d.Key.Kind, Namespace: d.Key.Namespace, Name: d.Key.Name,
		Then: jsonOf(d.Then), Now: jsonOf(d.Now),
		Lost: d.Lost, Revision: strconv.FormatInt(d.Revision, 10),
	}
	if u := d.Unreadable; u != nil {
		out.Unreadable = &unreadableValue{strconv.FormatInt(u.Revision, 10), u.Why}
	}
	return out
}

// changes answers with the changes in a scope since a revision.
func (a *API) changes(w http.ResponseWriter, r *http.Request) error {
	q := wire.Query(r)
	if err := wire.CheckParams(q, changesParams); err != nil {
		return err
	}
	since, err := wire.CountParam(q, "since")
	if err != nil || since == 0 {
		return wire.BadParam(q, "since", "a resourceVersion")
	}
	scope, err := ScopeOf(wire.Given(q, "kind"), wire.Given(q, "namespace"), wire.Given(q, "name"))
	if err != nil {
		return err
	}
	if err := a.opts.Guard.CheckHistory(r.Context(), scope.Kind, scope.Namespace); err != nil {
		return err
	}
	opts := store.ChangesOptions{Since: since}
	if err := changesPageOf(q, &opts); err != nil {
		return err
	}
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML)
	if err != nil {
		return err
	}
	var body []byte
	name := fmt.Sprintf("changes %v %s %s", kindOf(scope), scope.Namespace, scope.Name)
	done, err := a.largeReads.Read(r.Context(), name, func(ctx context.Context) (int, error) {
		body, err = a.changesText(ctx, scope, opts)
		return len(body), err
	})
	if err != nil {
		return err
	}
	defer done()
	defer a.largeReads.Sending(w)()
	return answer.WriteText(w, http.StatusOK, f, body)
}

// kindOf returns the kind of a scope, or "" for all kinds.
func kindOf(scope store.Scope) string {
	if scope.Kind == nil {
		return ""
	}
	return scope.Kind.Kind
}

// changesText returns the answer with changes, as JSON.
func (a *API) changesText(ctx context.Context, scope store.Scope, opts store.ChangesOptions) ([]byte, error) {
	found, next, err := a.changesSince(ctx, scope, opts)
	if err != nil {
		return nil, err
	}
	answer := changesAnswer{TypeMeta: metav1.TypeMeta{APIVersion: wire.RegistryVersion, Kind: "Changes"}, Items: []difference{}}
	answer.Metadata.Continue = next
	for _, d := range found {
		answer.Items = append(answer.Items, differenceOf(d))
	}
	return json.Marshal(answer)
}

// changesPageOf reads limit and continue into opts.
func changesPageOf(q url.Values, opts *store.ChangesOptions) error {
	limit, err := wire.CountParam(q, "limit")
	if err != nil {
		return err
	}
	opts.Limit = int(min(limit, store.MaxTxnOps))
	if token := q.Get("continue"); token != "" {
		from, err := store.ParseContinue(token)
		if err != nil {
			return wire.BadRequest("query parameter continue: %v", err)
		}
		opts.After = from.After
	}
	return nil
}

// changesSince returns a page of changes and the token of the next page. Without a
// limit it returns all changes, and an error if they exceed one page. The first
// page has the unreadable values that were already stored at the revision.
func (a *API) changesSince(ctx context.Context, scope store.Scope, opts store.ChangesOptions) (found []store.Difference, next string, err error) {
	all := opts.Limit == 0
	if all && opts.After != (schema.Key{}) {
		return nil, "", wire.BadRequest("query parameter continue: needs a limit")
	}
	if all {
		opts.Limit = store.MaxTxnOps
	}
	found, more, err := a.opts.Store.ChangesPage(ctx, scope, opts)
	last := schema.Key{}
	if len(found) > 0 {
		last = found[len(found)-1].Key
	}
	found = OfScope(scope, found)
	if all && more {
		return nil, "", &store.Error{Kind: store.ErrTooLarge, Detail: fmt.Sprintf(
			"more than %d objects, or %d bytes of them, have changed since revision %d: ask for pages with limit, or for one kind", store.MaxTxnOps, store.MaxChangesPage, opts.Since)}
	}
	if err != nil {
		return nil, "", err
	}
	if more {
		next = store.Continue{Revision: opts.Since, After: last}.Token()
	}
	if opts.After == (schema.Key{}) {
		lost, err := a.LostSince(ctx, scope, opts.Since)
		if err != nil {
			return nil, "", err
		}
		found = append(lost, found...) // the next page begins after the last of found
	}
	if all {
		store.SortDifferences(found)
	}
	return found, next, nil
}

// OfScope returns the differences of the kinds in a scope. A scope without a kind means
// schema.MeshKinds.
func OfScope(scope store.Scope, found []store.Difference) []store.Difference {
	if scope.Kind != nil {
		return found
	}
	return slices.DeleteFunc(found, func(d store.Difference) bool {
		kind, known := schema.KindByName(d.Key.Kind)
		return known && kind.Flat
	})
}

// LostSince returns the values of a scope that cannot be read and that were already
// stored at revision since.
func (a *API) LostSince(ctx context.Context, scope store.Scope, since int64) (out []store.Difference, err error) {
	for _, u := range store.UnreadableIn(a.opts.Reads, scope) {
		if kind, known := schema.KindByName(u.Key.Kind); scope.Kind == nil && known && kind.Flat {
			continue
		}
		if u.Key == (schema.Key{}) || u.Revision > since {
			continue
		}
		// It may have been repaired in the meantime.
		_, err := a.opts.Reads.Get(ctx, u.Key, store.ReadOptions{})
		if errors.Is(err, store.ErrUnreadable) {
			out = append(out, store.Difference{Key: u.Key, Unreadable: &u, Lost: true, Revision: u.Revision})
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return out, nil
}

// ScopeOf returns the scope of the three names together. A nil name is left out. An
// empty name is an error: an unset variable must not select everything.
func ScopeOf(kindName, namespace, name *string) (store.Scope, error) {
	var scope store.Scope
	if kindName != nil {
		kind, err := wire.KindNamed("kind", *kindName)
		if err != nil {
			return scope, err
		}
		scope.Kind = kind
	}
	for _, part := range []struct {
		what  string
		given *string
		into  *string
	}{{"namespace", namespace, &scope.Namespace}, {"name", name, &scope.Name}} {
		if part.given == nil {
			continue
		}
		if *part.into = *part.given; *part.given == "" {
			return scope, wire.BadRequest("%s: must not be empty", part.what)
		}
	}
	if scope.Name != "" && (scope.Kind == nil || scope.Namespace == "") {
		return scope, wire.BadRequest("name: needs a kind and a namespace too")
	}
	return scope, nil
}

// measuredHistory counts the bytes of the versions read.
type measuredHistory struct {
	store.Historian
	size int
}

func (m *measuredHistory) History(ctx context.Context, key schema.Key) ([]store.Version, error) {
	versions, err := m.Historian.History(ctx, key)
	for _, v := range versions {
		m.size += len(jsonOf(v.Object))
	}
	return versions, err
}
