package status

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// TestConditionsOfEveryCode checks that an object with any message except advice is
// neither accepted nor programmed, even if all of its proxies run it, or none is
// concerned.
func TestConditionsOfEveryCode(t *testing.T) {
	codes := []diag.Code{"PA9999"} // one that this version does not know
	for _, m := range diag.Messages {
		codes = append(codes, m.Code)
	}
	for _, code := range codes {
		for _, reason := range []diag.Reason{diag.NotHonoured, diag.Conflict, diag.NoSuchReference} {
			for _, severity := range []diag.Severity{diag.Warning, diag.Error} {
				for _, proxies := range []int{0, 2} {
					p := diag.Problem{Severity: severity, Reason: reason, Code: code, Message: "why"}
					total := fleetStatus{ObjectStatus: discovery.ObjectStatus{Proxies: proxies, Running: proxies, Problems: diag.List{p}}}
					m, _ := code.Message()
					want := metav1.ConditionFalse
					if m.Advice && severity == diag.Warning {
						want = metav1.ConditionTrue
					}
					status := statusOf(&schema.Object{}, total)
					for _, kind := range []string{schema.ConditionAccepted, schema.ConditionProgrammed} {
						if c := status.Condition(kind); c.Status != want {
							t.Errorf("%s %s, %s, of %d proxies: %s is %s, want %s", code, reason, severity, proxies, kind, c.Status, want)
						}
					}
				}
			}
		}
	}
}
