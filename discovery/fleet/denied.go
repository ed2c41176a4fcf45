package fleet

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/ir"
)

// withheldByPolls returns the secrets of a view that a polling proxy is not sent.
func (c *Client) withheldByPolls(v *compiled.View) []*ir.Secret {
	if v == nil || !c.denied.Load() {
		return nil
	}
	return compiled.WithKeys(v.Config)
}

// NoteDenied records whether a polling proxy was denied private keys.
func (f *Fleet) NoteDenied(c *Client, denied bool) {
	if c.denied.Swap(denied) != denied {
		f.NoteRefusing(c)
	}
}

// eachDenialOf visits the objects that need a secret which a proxy without a stream is not
// sent.
func (f *Fleet) eachDenialOf(c *Client, visit func(diag.Ref, feedback.Refusal)) {
	if !c.denied.Load() || len(f.streamsOf(c)) > 0 {
		return
	}
	if v := c.View(); v != nil {
		feedback.EachWithheld(c.Node.ID, c.withheldByPolls(v), v.Config, visit)
	}
}
