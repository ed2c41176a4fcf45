package stream

import (
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// TellKeys has the stream send private keys, as its connection proves that the proxy
// may have them. It must be called before the first Receive.
func (st *Stream) TellKeys() { st.keys = true }

// secretsOf are the secrets that the proxy is sent.
func (st *Stream) secretsOf(a *compiled.V3Answers) *xds.Set {
	if st.keys {
		return a.Secrets
	}
	return a.PublicSecrets
}

// withheld are the secrets that the proxy asks for and is not sent.
func (st *Stream) withheld(target *compiled.Streamed) []*ir.Secret {
	if st.keys || target.PublicSecrets == target.Secrets || !st.secrets.asked {
		return nil
	}
	return slices.DeleteFunc(compiled.WithKeys(target.View.Config), func(s *ir.Secret) bool { return !st.secrets.Wants(s.Name) })
}
