package main

import (
	"encoding/json"
	"fmt"

	"github.com/pilot-api/pilot-api/internal/consistency"
)

const transactionsPath = "/apis/registry.istio.io/v1/transactions"

// wireStep is an operation of a transaction in the server's format.
type wireStep struct {
	Verb          consistency.Verb  `json:"verb"`
	Object        json.RawMessage   `json:"object,omitempty"`
	Target        map[string]string `json:"target,omitempty"`
	Patch         json.RawMessage   `json:"patch,omitempty"`
	Preconditions map[string]any    `json:"preconditions,omitempty"`
}

func transaction(steps []consistency.Step) []byte {
	wire := make([]wireStep, len(steps))
	for i, s := range steps {
		w := wireStep{Verb: s.Verb}
		switch s.Verb {
		case consistency.Patch:
			w.Patch = mergePatch(s.Value, s.Expect)
		case consistency.Delete:
			if s.Expect != 0 {
				w.Preconditions = map[string]any{"resourceVersion": fmt.Sprint(s.Expect)}
			}
		default:
			w.Object = body(s.Key, s.Value, s.Expect)
		}
		if w.Object == nil {
			w.Target = map[string]string{"kind": s.Key.Kind, "namespace": s.Key.Namespace, "name": s.Key.Name}
		}
		wire[i] = w
	}
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"operations": wire}})
	if err != nil {
		panic(err) // Everything in it can be encoded.
	}
	return text
}

// readTransaction requires a result for each step, all with one revision.
func readTransaction(op *consistency.Operation, answer []byte) error {
	var action struct {
		Status struct {
			Revision int64 `json:"revision,string"`
			Results  []struct {
				Verb   consistency.Verb
				Object document
			}
		}
	}
	if err := json.Unmarshal(answer, &action); err != nil {
		return err
	}
	done := action.Status
	op.Revision = done.Revision
	if len(done.Results) != len(op.Steps) {
		return fmt.Errorf("%d results of %d operations", len(done.Results), len(op.Steps))
	}
	for i, result := range done.Results {
		want := consistency.Version{Key: op.Steps[i].Key, Revision: op.Revision, Value: op.Steps[i].Value}
		got := result.Object.version(want.Key.Kind)
		if op.Steps[i].Verb == consistency.Delete {
			want.Value = got.Value // The last state, which the order of changes tells.
		}
		if got != want {
			return fmt.Errorf("result %d is %s, want %s", i, got, want)
		}
	}
	return nil
}

// failedStep returns the index of the operation that the reason of a refusal is about: the
// first of those that failed.
func failedStep(answer []byte) (index int) {
	var status struct {
		Details struct {
			Causes []struct{ Reason, Field string }
		}
	}
	_ = json.Unmarshal(answer, &status)
	for _, cause := range status.Details.Causes {
		if cause.Reason == "OperationFailed" {
			_, _ = fmt.Sscanf(cause.Field, "spec.operations[%d", &index)
			return index
		}
	}
	return index
}
