package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/diag"
)

// ruleWith is a RouteRule with n entries that lead nowhere, which is a warning
// each, and more lines of its spec.
func ruleWith(n int, more string) string {
	return "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: x}\nspec:\n" +
		"  destination: {name: a}\n" + more + "  route:\n  - weight: 100\n" +
		strings.Repeat("  - destination: {}\n", n)
}

// TestWarningsRefuseNothing, however many they are.
func TestWarningsRefuseNothing(t *testing.T) {
	o, list := Decode([]byte(ruleWith(200, "")), Options{})
	if o == nil || list.Err() != nil {
		t.Fatalf("refused: %v", list.Errors())
	}
	last := list[len(list)-1]
	if len(list) != mostProblems+1 || last.Severity != diag.Warning || !strings.Contains(last.Message, "more warnings") {
		t.Errorf("%d problems, the last is %v", len(list), last)
	}
	byHand, err := o.WithMeta(o.Meta)
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(byHand).Err(); err != nil {
		t.Errorf("refused by Validate: %v", err)
	}
}

// TestErrorsComeThroughWarnings: what refuses the object is never cut for what
// does not, wherever in the object it is.
func TestErrorsComeThroughWarnings(t *testing.T) {
	_, list := Decode([]byte(ruleWith(200, "  httpFault: {abort: {grpcStatus: x}}\n")+"  websocketUpgrade: 1\n  zzz: 1\n"), Options{})
	want := []string{
		"error FieldValueNotSupported spec.httpFault.abort.grpcStatus",
		"error FieldValueTypeInvalid spec.websocketUpgrade",
		"error FieldUnknown spec.zzz",
	}
	if diff := cmp.Diff(want, verdict(list.Errors())); diff != "" {
		t.Error(diff)
	}
	if len(list) != mostProblems+1 {
		t.Errorf("%d problems", len(list))
	}
}

func TestManyErrorsCutTheWarnings(t *testing.T) {
	var more strings.Builder
	for i := range 150 {
		fmt.Fprintf(&more, "  nosuch%d: 1\n", i)
	}
	_, list := Decode([]byte(ruleWith(150, more.String())), Options{})
	last := list[len(list)-1]
	if len(list.Errors()) != mostProblems+1 || len(list.Warnings()) != 0 || last.Message != moreErrors {
		t.Errorf("%d errors, %d warnings, the last is %v", len(list.Errors()), len(list.Warnings()), last)
	}
}

// TestTwoProblemsOfOneField: each is its own, and nothing is said twice.
func TestTwoProblemsOfOneField(t *testing.T) {
	testSpecs(t, "config.istio.io/v1alpha2", "RouteRule", []specCase{{
		"weights, beside a redirect",
		"destination: {name: a}\nredirect: {uri: /b}\nroute: [{weight: 50}]",
		[]string{"error FieldValueInvalid spec.route", "error FieldValueForbidden spec.route"},
	}, {
		"a fault that aborts nothing, beside a redirect",
		"destination: {name: a}\nredirect: {uri: /b}\nhttpFault: {abort: {}}",
		[]string{"error FieldValueForbidden spec.httpFault", "warning NotHonoured spec.httpFault.abort"},
	}})
}

func TestAbbreviationsKeepTheirCase(t *testing.T) {
	_, list := Decode([]byte(ruleWith(0, "  httpFault: {abort: {percent: 1, httpStatus: 500, http2Error: x}}\n")), Options{})
	if len(list) != 1 || !strings.Contains(list[0].Message, "has no effect: HTTP/2 error") {
		t.Errorf("%v", list)
	}
}
