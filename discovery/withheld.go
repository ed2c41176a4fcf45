package discovery

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/ir"
)

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
