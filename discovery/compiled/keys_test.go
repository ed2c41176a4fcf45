package compiled

import (
	"testing"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/ir"
)

// TestProxylessHasNoSecrets: a client of gRPC has no secrets in any scope, although its
// view has one with a private key.
func TestProxylessHasNoSecrets(t *testing.T) {
	v := &View{Encoder: &Encoder{}, Config: &ir.Config{Secrets: []*ir.Secret{{Name: "default/a", Key: credential.NewKey("k")}}}}
	a := encodeProxyless(v)
	for _, scope := range []KeyScope{{}, KeysOfNamespace("shop"), KeysOfNamespace("default"), AllKeys()} {
		if s := a.SecretsWithin(scope); s != nil {
			t.Errorf("%+v has %v", scope, s)
		}
	}
}
