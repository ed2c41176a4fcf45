package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestMaxTransaction: what is too much for a write is too much for its dry run.
func TestMaxTransaction(t *testing.T) {
	p := startProgram(t, t.TempDir(), "--max-transaction", "1")
	const operations = `{"spec":{"operations":[
		{"verb":"delete","target":{"kind":"RouteRule","namespace":"default","name":"a"}},
		{"verb":"delete","target":{"kind":"RouteRule","namespace":"default","name":"b"}}]}}`
	for _, query := range []string{"", "?dryRun=All"} {
		resp, err := http.Post(p.URL+"/apis/registry.istio.io/v1/transactions"+query, "application/json", strings.NewReader(operations))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), "this server takes 1 (--max-transaction)") {
			t.Errorf("%q: %s %s, %v", query, resp.Status, text, err)
		}
	}
}
