package e2e

import "testing"

// The rows of the demo, asserted.
func TestRows(t *testing.T) {
	w := open(t)
	for _, row := range Rows {
		t.Run(row.Title(), func(t *testing.T) {
			v, err := w.Play(t.Context(), row)
			if err != nil {
				t.Fatal(err)
			}
			if v.Wrong != "" {
				t.Errorf("%s: should be %s, but %s", v.Did, row.Should, v.Wrong)
			}
		})
	}
}
