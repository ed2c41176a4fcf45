package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"testing"
)

// TestOpenAPI checks that the documents are valid and describe each parameter.
func TestOpenAPI(t *testing.T) {
	for path, doc := range servertest.Described() {
		if err := doc.Validate(t.Context()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				if op.Description == "" {
					t.Errorf("%s %s is not described", method, path)
				}
				for _, p := range op.Parameters {
					if p.Value.Description == "" {
						t.Errorf("%s %s: parameter %s is not described", method, path, p.Value.Name)
					}
				}
			}
		}
	}
}
