package discovery

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
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

// withheldByPolls are the secrets of a view that a proxy which polls is not sent.
func (c *client) withheldByPolls(v *compiled.View) []*ir.Secret {
	if v == nil || !c.denied.Load() {
		return nil
	}
	return compiled.WithKeys(v.Config)
}

// noteDenied takes down whether a proxy that polls was denied private keys.
func (s *Publisher) noteDenied(c *client, denied bool) {
	if c.denied.Swap(denied) != denied {
		s.fleet.noteRefusing(c)
	}
}

// eachDenialOf visits the objects that need a secret which a proxy on no stream is not
// sent.
func (f *fleet) eachDenialOf(c *client, visit func(diag.Ref, feedback.Refusal)) {
	if !c.denied.Load() || len(f.streamsOf(c)) > 0 {
		return
	}
	if v := c.toldView(); v != nil {
		feedback.EachWithheld(c.node.ID, c.withheldByPolls(v), v.Config, visit)
	}
}
