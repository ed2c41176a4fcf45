package stream

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// SendKeys lets the stream send the private keys of a scope, because its connection proves
// that the proxy may have them. By default the stream sends none. Call SendKeys before the
// first Receive.
func (st *Stream) SendKeys(scope compiled.KeyScope) { st.keys = scope }

// secretsOf returns the secrets that the proxy is sent.
func (st *Stream) secretsOf(a *compiled.V3Answers) *xds.Set {
	return st.withOwn(a.SecretsWithin(st.keys), a.View)
}

// withheld returns the secrets that the proxy asks for and is not sent.
func (st *Stream) withheld(target *compiled.Streamed) []*ir.Secret {
	if st.secretsOf(target.V3Answers) == target.Secrets || !st.secrets.asked {
		return nil
	}
	return slices.DeleteFunc(compiled.WithKeys(target.View.Config), func(s *ir.Secret) bool { return st.keys.Allows(s) || !st.secrets.Wants(s.Name) })
}
