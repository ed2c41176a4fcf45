package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
)

// checkOwn holds for every object: once it is stored, it has the warnings that its
// writer was told, and no violations.
func checkOwn(t *testing.T, o *Object, list diag.List) {
	t.Helper()
	want := map[diag.Problem]bool{}
	for _, p := range list {
		p.Position = nil
		want[p] = true
	}
	stored, err := Stored(o.Encoded(), 1)
	if err != nil {
		t.Fatal(err)
	}
	own, got := OwnOf(stored), map[diag.Problem]bool{}
	for _, p := range own.Warnings {
		got[p] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the writer is told otherwise than who asks later (-written +stored):\n%s", d)
	}
	if len(own.Violations) > 0 {
		t.Errorf("violations of a good object: %v", own.Violations)
	}
}

// TestNoCodeIsCut: of an object with more warnings than are told, one of each code is
// told, so that advice does not hide what is not honoured.
func TestNoCodeIsCut(t *testing.T) {
	text := "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x}\nspec:\n  hosts: [a]\n  http:\n" +
		strings.Repeat("  - {match: [{uri: {prefix: /a/}}], rewrite: {uri: '/b?c'}, route: [{destination: {host: a}}]}\n", 2*mostProblems) +
		"  - {match: [{uri: {exact: /a/../b}}], directResponse: {status: 403}}\n"
	o, list := Decode([]byte(text), Options{})
	if o == nil {
		t.Fatal(list)
	}
	for of, list := range map[string]diag.List{"written": list, "stored": OwnOf(o).Warnings} {
		codes := map[diag.Code]int{}
		for _, p := range list {
			codes[p.Code]++
		}
		if codes[diag.NeverMatches] == 0 || codes[diag.NeverUsed] == 0 || len(list) > mostProblems+len(codes)+1 {
			t.Errorf("%s: %v", of, codes)
		}
	}
}

// TestWarningsOfWhatBreaksRules: an object of an older version has its warnings beside
// its violations.
func TestWarningsOfWhatBreaksRules(t *testing.T) {
	kind, _ := KindByName("VirtualService")
	o, err := New(kind, metav1.ObjectMeta{Name: "x", Namespace: "default"}, []byte(`{"hosts":["a"],"http":[{"match":[{"method":{"exact":"get"},"headers":{"@a":{"exact":"b"}}}],"directResponse":{"status":0}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, p := range OwnOf(o).Beside(nil) {
		codes = append(codes, fmt.Sprintf("%s %s", p.Severity, p.Code))
	}
	want := []string{"warning PA0202", "warning PA0501", "warning PA0004", "warning PA0004"}
	if d := cmp.Diff(want, codes); d != "" {
		t.Error(d)
	}
}
