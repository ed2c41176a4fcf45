package feedback

import (
	"errors"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// Private keys are sent only over a connection that proves that its proxy may have
// them. All other proxies get the rest of their configuration, authorities included: a
// listener that waits for a certificate then serves nobody, and a cluster reaches
// nobody. The proxy's status and the objects behind its secrets say why.

// ErrWithheld is the answer to a poll for a private key over a connection without a proof.
var ErrWithheld = errors.New("private keys are sent only over the server's own socket, which the user who runs the server may open " +
	"('istioctl bootstrap' as that user, on the server's machine, writes its path into the bootstrap), or over a stream whose proxy shows a certificate (--grpc-client-ca) " +
	"for the Secret's namespace or the root namespace, or one without a SPIFFE ID")

// EachWithheld visits the objects that need a secret which the server withholds from the
// proxy.
func EachWithheld(node string, withheld []*ir.Secret, config *ir.Config, visit func(diag.Ref, Refusal)) {
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
			visit(ref, Refusal{Node: node, Type: xds.NameOf(xds.SecretType), Words: withheldWords(s), Withheld: true})
		}
	}
}
