package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

const (
	// changesPath is what has changed since a revision.
	changesPath = "/apis/" + registryVersion + "/changes"
	// rollbacksPath takes what shall be as it was at a revision.
	rollbacksPath = "/apis/" + registryVersion + "/rollbacks"
)

var (
	historyParams  = params()
	changesParams  = params("since", "kind", "namespace", "name")
	rollbackParams = params("dryRun", "fieldManager")
)

// historyAnswer has the newest version first.
type historyAnswer struct {
	metav1.TypeMeta `json:",inline"`
	Items           []objectVersion `json:"items"`
}

// objectVersion is one state of an object in an answer.
type objectVersion struct {
	Revision string `json:"revision"`
	// Verb, and what follows, is of the change that began it; "" when that is no
	// longer known.
	Verb        store.Verb `json:"verb,omitempty"`
	Time        *time.Time `json:"time,omitempty"`
	User        string     `json:"user,omitempty"`
	Program     string     `json:"program,omitempty"`
	Transaction string     `json:"transaction,omitempty"`
	// Object is the state; none after a delete, and where it was lost.
	Object json.RawMessage `json:"object,omitempty"`
	Lost   bool            `json:"lost,omitempty"`
	// AbsentSince is from which revision on it is known that there was no object:
	// since a delete, or before the oldest version.
	AbsentSince string `json:"absentSince,omitempty"`
}

func versionOf(v store.Version) objectVersion {
	out := objectVersion{Revision: strconv.FormatInt(v.Revision, 10), Lost: v.Lost, Object: jsonOf(v.Object)}
	if v.AbsentSince > 0 {
		out.AbsentSince = strconv.FormatInt(v.AbsentSince, 10)
	}
	if c := v.Change; c != nil {
		out.Verb, out.User, out.Program, out.Transaction = c.Verb, c.Author.User, c.Author.Program, c.Transaction
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

// history answers the versions of an object that are known, the newest first.
func (k *resource) history(w http.ResponseWriter, r *http.Request) error {
	if err := checkParams(queryOf(r), historyParams); err != nil {
		return err
	}
	versions, err := k.opts.Store.History(r.Context(), k.target(r))
	if err != nil {
		return err
	}
	answer := historyAnswer{metav1.TypeMeta{APIVersion: registryVersion, Kind: "History"}, []objectVersion{}}
	for _, v := range versions {
		answer.Items = append(answer.Items, versionOf(v))
	}
	return writeJSON(w, r, answer)
}

// atRevision answers an object as it was at a revision.
func (k *resource) atRevision(w http.ResponseWriter, r *http.Request) error {
	f, err := negotiate(r, formatJSON, formatYAML)
	if err != nil {
		return err
	}
	if err := checkParams(queryOf(r), historyParams); err != nil {
		return err
	}
	revision, err := strconv.ParseInt(pathParam(r, "revision"), 10, 64)
	if err != nil || revision < 1 {
		return badRequest("revision: must be a resourceVersion, found %q", pathParam(r, "revision"))
	}
	obj, err := store.At(r.Context(), k.opts.Store, k.target(r), revision)
	if err != nil {
		return err
	}
	return writeText(w, http.StatusOK, f, obj.JSON())
}

type changesAnswer struct {
	metav1.TypeMeta `json:",inline"`
	Items           []difference `json:"items"`
}

// difference is what became of an object.
type difference struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Then      json.RawMessage `json:"then,omitempty"`
	Now       json.RawMessage `json:"now,omitempty"`
	// Unreadable is in the place of Now if the stored value cannot be read.
	Unreadable *unreadableValue `json:"unreadable,omitempty"`
}

// unreadableValue is a stored value that is no object.
type unreadableValue struct {
	Revision string `json:"revision"`
	Why      string `json:"why"`
}

func differenceOf(d store.Difference) difference {
	out := difference{Kind: d.Key.Kind, Namespace: d.Key.Namespace, Name: d.Key.Name, Then: jsonOf(d.Then), Now: jsonOf(d.Now)}
	if u := d.Unreadable; u != nil {
		out.Unreadable = &unreadableValue{strconv.FormatInt(u.Revision, 10), u.Why}
	}
	return out
}

// changes answers what in a scope has changed since a revision.
func (s *Server) changes(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if err := checkParams(q, changesParams); err != nil {
		return err
	}
	since, err := countParam(q, "since")
	if err != nil || since == 0 {
		return badParam(q, "since", "a resourceVersion")
	}
	scope, err := scopeOf(given(q, "kind"), given(q, "namespace"), given(q, "name"))
	if err != nil {
		return err
	}
	found, err := s.opts.Store.Changes(r.Context(), scope, since)
	if err != nil {
		return err
	}
	answer := changesAnswer{metav1.TypeMeta{APIVersion: registryVersion, Kind: "Changes"}, []difference{}}
	for _, d := range found {
		answer.Items = append(answer.Items, differenceOf(d))
	}
	return writeJSON(w, r, answer)
}

// scopeOf is what the three name together, each nil where it is left out. One that is
// empty is not left out: a variable that nobody has set does not mean all there is.
func scopeOf(kindName, namespace, name *string) (store.Scope, error) {
	var scope store.Scope
	if kindName != nil {
		kind, err := kindNamed("kind", *kindName)
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
			return scope, badRequest("%s: must not be empty", part.what)
		}
	}
	if scope.Name != "" && (scope.Kind == nil || scope.Namespace == "") {
		return scope, badRequest("name: needs a kind and a namespace too")
	}
	return scope, nil
}

// rollback is the body of a POST: what shall be as it was at a revision.
type rollback struct {
	metav1.TypeMeta `json:",inline"`
	Revision        writtenRevision `json:"revision"`
	Kind            *string         `json:"kind,omitempty"`
	Namespace       *string         `json:"namespace"`
	Name            *string         `json:"name,omitempty"`
}

// writtenRevision is a number in a body, or the text that a resourceVersion is in
// objects and in histories.
type writtenRevision int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *writtenRevision) UnmarshalJSON(text []byte) error {
	revision, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("revision: must be a resourceVersion, found %s", text)
	}
	*n = writtenRevision(revision)
	return nil
}

// rollback answers POST with one transaction that undoes what has changed in an
// object, or a namespace, since a revision. It fails, and does nothing, if
// somebody changes one of the objects meanwhile.
func (s *Server) rollback(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if err := checkParams(q, rollbackParams); err != nil {
		return err
	}
	writes, err := s.writesOf(q)
	if err != nil {
		return err
	}
	body, _, err := readBody(r, objectTypes...)
	if err != nil {
		return err
	}
	var asked rollback
	if err := yaml.UnmarshalStrict(body, &asked); err != nil {
		return badRequest("body: must be {revision, namespace} and perhaps kind and name: %v", err)
	}
	if asked.Revision < 1 || asked.Namespace == nil {
		return badRequest("body: revision must be a resourceVersion, and namespace given")
	}
	scope, err := scopeOf(asked.Kind, asked.Namespace, asked.Name)
	if err != nil {
		return err
	}
	changed, err := s.opts.Store.Changes(r.Context(), scope, int64(asked.Revision))
	if err != nil {
		return err
	}
	var ops []store.Op
	for _, d := range changed {
		op, ok, err := d.Undo()
		if err != nil {
			return err
		}
		if ok {
			ops = append(ops, op)
		}
	}
	return s.transact(w, r, writes, ops, nil)
}
