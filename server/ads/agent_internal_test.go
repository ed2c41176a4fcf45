package ads

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// TestAgentSteersNoTerminal checks what a client states about its program, because
// it is shown to people.
func TestAgentSteersNoTerminal(t *testing.T) {
	n := node{Node: &corev3.Node{
		UserAgentName:        "gRPC Go\x1b[2J",
		UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: "1.85\u009b31m\u202e"},
	}}
	if got, want := n.agent(t.Context()).Version, `gRPC Go\x1b[2J 1.85\u009b31m\u202e`; got != want {
		t.Errorf("version %q, want %q", got, want)
	}
}
