package discovery

import (
	"errors"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// Private keys are sent only over a connection that proves that its proxy may have
// them. All other proxies get the rest of their configuration, authorities included: a
// listener that waits for a certificate then serves nobody, and a cluster reaches
// nobody. The proxy's status and the objects behind its secrets say why.

// ErrWithheld answers a poll for a private key over a connection that proves nothing.
var ErrWithheld = errors.New("private keys are sent only over the server's own socket, which the user who runs the server may open " +
	"('istioctl bootstrap' as that user, on the server's machine, writes it down), or over a stream whose proxy shows a certificate (--grpc-client-ca)")

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
	return slices.DeleteFunc(compiled.WithKeys(target.View.Config), func(s *ir.Secret) bool { return !st.secrets.wants(s.Name) })
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
func (f *fleet) eachDenialOf(c *client, visit func(diag.Ref, Refusal)) {
	if !c.denied.Load() || len(f.streamsOf(c)) > 0 {
		return
	}
	if v := c.toldView(); v != nil {
		c.eachWithheld(c.withheldByPolls(v), v.Config, visit)
	}
}

// eachWithheld visits the objects that need a secret which the proxy is not sent.
func (c *client) eachWithheld(withheld []*ir.Secret, config *ir.Config, visit func(diag.Ref, Refusal)) {
	for _, s := range withheld {
		var refs []diag.Ref
		config.EachUser(s, func(ref diag.Ref) {
			if ref != (diag.Ref{}) && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		})
		if len(refs) == 0 {
			refs = []diag.Ref{{}}
		}
		for _, ref := range refs {
			visit(ref, Refusal{Node: c.node.ID, Type: xds.NameOf(xds.SecretType), Words: withheldWords(s), Withheld: true})
		}
	}
}

func withheldWords(s *ir.Secret) string { return s.Name + ": " + ErrWithheld.Error() }

// noteWithheld takes in the state of secrets that are not sent.
func (s *stance) noteWithheld(r regard, withheld []*ir.Secret) {
	if len(withheld) > 0 {
		s.note(r, xds.NameOf(xds.SecretType), TypeStatus{State: Rejected, Error: withheldWords(withheld[0])})
	}
}
