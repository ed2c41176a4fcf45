package actions

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/objects"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// The kinds of actions.
const (
	kindTransaction = "Transaction"
	kindRollback    = "Rollback"
)

// Resources are the resources of actions, which can only be created.
var Resources = []metav1.APIResource{
	{Name: "transactions", SingularName: "transaction", Kind: kindTransaction, Verbs: metav1.Verbs{"create"}},
	{Name: "rollbacks", SingularName: "rollback", Kind: kindRollback, Verbs: metav1.Verbs{"create"}},
}

// action is an object that a client creates to have something done. It is answered
// with a status and not stored, as a SubjectAccessReview of Kubernetes. Namespaces of
// objects are in its spec.
type action[Spec any] struct {
	actionHead `json:",inline"`
	// Spec is not in the answer, because it may have private keys.
	Spec *Spec `json:"spec,omitempty"`
	// Status of a request is ignored.
	Status *actionStatus `json:"status,omitempty"`
}

type actionHead struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata,omitzero"`
}

// check requires an action to be of a kind and to have a spec. A request may leave out
// its kind and apiVersion, which follow from its path.
func (a *action[Spec]) check(kind string) error {
	switch {
	case a.Kind != "" && a.Kind != kind, a.APIVersion != "" && a.APIVersion != wire.RegistryVersion:
		return wire.BadRequest("body: must be a %s of %s, found %s of %s", kind, wire.RegistryVersion, a.Kind, a.APIVersion)
	case a.Spec == nil:
		return wire.BadRequest("spec: required")
	}
	a.TypeMeta = metav1.TypeMeta{Kind: kind, APIVersion: wire.RegistryVersion}
	return nil
}

// actionStatus says what was done.
type actionStatus struct {
	// Revision is the resourceVersion of everything that was written; empty if nothing
	// was.
	Revision string            `json:"revision,omitempty"`
	Results  []operationResult `json:"results"`
	// Undone are the objects that a step of a rollback leaves unchanged.
	Undone []undone `json:"undone,omitempty"`
	// Continue names the next step of a rollback, if there is one, and Remaining is the
	// number of objects that are left, as far as they were counted.
	Continue  string `json:"continue,omitempty"`
	Remaining int    `json:"remaining,omitempty"`
}

// operationResult is the result of the operation with the same index.
type operationResult struct {
	Verb store.Verb `json:"verb"`
	// Object is the present state. After a delete it is the last state, with the
	// resourceVersion of the deletion.
	Object json.RawMessage `json:"object"`
}

// statusOfSteps returns the status of completed steps, and what they changed.
func statusOfSteps(steps []step, done []*schema.Object) (actionStatus, []schema.Change) {
	status, newest := actionStatus{Results: make([]operationResult, len(done))}, int64(0)
	changes := make([]schema.Change, len(done))
	for i, obj := range done {
		changes[i] = objects.Became(obj)
		if steps[i].Verb == store.OpDelete && len(obj.Meta.Finalizers) == 0 {
			changes[i] = schema.Change{Before: obj}
		}
		status.Results[i] = operationResult{steps[i].Verb, obj.JSONIn(cmp.Or(steps[i].version, obj.Kind.Version))}
		newest = max(newest, obj.Revision())
	}
	if newest > 0 {
		status.Revision = strconv.FormatInt(newest, 10)
	}
	return status, changes
}

// writeAction answers with an action that was done.
func writeAction(w http.ResponseWriter, r *http.Request, head actionHead, status actionStatus) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML)
	if err != nil {
		return err
	}
	return answer.WriteValue(w, http.StatusCreated, f, action[struct{}]{actionHead: head, Status: &status})
}
