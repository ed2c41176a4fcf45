package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/poll"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// V3 answers one v3 poll with an encoded DiscoveryResponse in proto JSON. version is the
// one that the proxy has accepted, "" for none; an answer with the same version has no
// body. If names is empty, the answer has all resources of the type, otherwise exactly the
// named ones that exist. Every name of an endpoint set exists: a name without instances
// gets an empty assignment. Every port number exists as a route table: without routes the
// table is empty, and requests there get 404. A poll for a private key gets ErrWithheld.
func (p *Publisher) V3(typeURL string, node mesh.Node, version string, names []string) (xds.Answer, error) {
	return p.poll(typeURL, node, version, names, false)
}

// V3Secrets is V3 for secrets over a connection that proves that the proxy may have
// private keys.
func (p *Publisher) V3Secrets(node mesh.Node, version string, names []string) (xds.Answer, error) {
	return p.poll(xds.SecretType, node, version, names, true)
}

func (p *Publisher) poll(typeURL string, node mesh.Node, version string, names []string, keys bool) (xds.Answer, error) {
	state, g, err := p.locate(node)
	if err != nil {
		return xds.Answer{}, err
	}
	state.UsesV3.Store(true)
	var answer xds.Answer
	switch typeURL {
	case xds.ClusterType:
		answer, err = state.v3Clusters(g, version, names)
	case xds.RouteType:
		answer, err = state.v3Routes(g, version, names)
	case xds.EndpointType:
		answer, err = state.v3Endpoints(g, version, names)
	case xds.ListenerType:
		answer, err = state.v3Listeners(g, version, names)
	case xds.SecretType:
		answer, err = state.v3Secrets(version, names, keys)
		p.fleet.NoteDenied(state.Client, errors.Is(err, feedback.ErrWithheld))
	default:
		return xds.Answer{}, fmt.Errorf("%w %q: want %s, %s, %s, %s or %s", ErrBadType, typeURL, xds.ClusterType, xds.EndpointType, xds.ListenerType, xds.RouteType, xds.SecretType)
	}
	if err == nil && answer.Version != version {
		err = p.compose(&answer)
	}
	p.concludePolls(state.Client)
	if errors.Is(err, feedback.ErrWithheld) {
		return xds.Answer{}, err
	}
	return answer, notReady(node.ID, err)
}

// compose returns the function that makes the body of an answer.
func (p *Publisher) compose(a *xds.Answer) error {
	return p.recoverPanic("body", func() error {
		a.Body, a.Compose = a.Compose(), nil
		return nil
	})
}

func (p *located) v3Clusters(g *compiled.Generation, version string, names []string) (xds.Answer, error) {
	return p.Transition.AnswerClusters(p.poll(g, version), func(target *compiled.View, beside []*compiled.View) (xds.Answer, error) {
		a, err := target.EncodedV3(p.Proxy.IP)
		if err != nil {
			return xds.Answer{}, err
		}
		return a.ClustersBeside(beside).Answer(names), nil
	})
}

func (p *located) v3Routes(g *compiled.Generation, version string, names []string) (xds.Answer, error) {
	return p.Transition.AnswerRoutes(p.poll(g, version), strings.Join(names, ","), func(v *compiled.View) (xds.Answer, error) {
		a, err := v.EncodedV3(p.Proxy.IP)
		if err != nil {
			return xds.Answer{}, err
		}
		return a.RoutesNamed(names), nil
	})
}

func (p *located) v3Listeners(g *compiled.Generation, version string, names []string) (xds.Answer, error) {
	return p.Transition.AnswerRoutes(p.poll(g, version), xds.ListenerType, func(v *compiled.View) (xds.Answer, error) {
		a, err := v.EncodedV3(p.Proxy.IP)
		if err != nil {
			return xds.Answer{}, err
		}
		return a.AnswerListeners(p.Proxy.IP, names)
	})
}

func (p *located) poll(g *compiled.Generation, version string) poll.Request {
	return poll.Request{Version: version, Next: p.View, Order: p.Order, Past: func(is func(*compiled.View) bool) (views []*compiled.View, recent *compiled.View) {
		return p.PastViews(p.publisher.past, p.Proxy, p.View, is)
	}, IsCaughtUp: p.publisher.isCaughtUp}
}

// v3Endpoints answers without a transition, because a set of endpoints is the same in every
// view. A proxy that may be ahead of this replica keeps what it has, and so does one whose
// routes may not have left a set that is empty now.
func (p *located) v3Endpoints(g *compiled.Generation, version string, names []string) (xds.Answer, error) {
	if len(names) == 0 {
		names = compiled.EndpointKeys(p.View.Config.Clusters)
	}
	find := func(name string) *xds.Resource { return g.Endpoints.Of(name).V3() }
	answer := xds.Gather(xds.EndpointType, names, find)
	switch {
	case answer.Version != version && version != "" && p.keepsEndpoints(g, names, find):
		return xds.Answer{Version: version}, nil
	case answer.Version == version || !p.lacksEndpoints(g, version, names):
		p.Transition.NoteEndpoints(p.View.Polled().Endpoints(), names, version, answer.Version, find)
		return answer, nil
	case version == "":
		return xds.Answer{}, poll.ErrBehind
	}
	return xds.Answer{Version: version}, nil
}

// keepsEndpoints reports whether the proxy keeps the instances of an empty set. An Envoy polls
// for each set by itself.
func (p *located) keepsEndpoints(g *compiled.Generation, names []string, find func(string) *xds.Resource) bool {
	if len(names) != 1 {
		return false
	}
	r := find(names[0])
	if r == nil || !r.Empty {
		return false
	}
	ahead := !g.IsComplete() || p.Client.View() != p.View
	return p.Transition.KeepsEndpoints(names[0], p.View, ahead)
}

// v3Secrets is not part of a transition: a listener or cluster keeps the last secret if the
// secret is gone.
func (p *located) v3Secrets(version string, names []string, keys bool) (xds.Answer, error) {
	if !keys && compiled.WantsKeys(p.View.Config, names) {
		return xds.Answer{}, feedback.ErrWithheld
	}
	a, err := p.View.EncodedV3(p.Proxy.IP)
	if err != nil {
		return xds.Answer{}, err
	}
	answer := a.Secrets.Answer(names)
	p.Transition.NoteSecrets(a.Secrets, names, version, answer.Version)
	return answer, nil
}

// lacksEndpoints reports whether endpoints that a proxy asks for may still arrive here.
func (p *located) lacksEndpoints(g *compiled.Generation, version string, names []string) bool {
	unknown := func(name string) bool {
		return len(g.Endpoints.Members(name)) == 0 && !slices.Contains(compiled.EndpointKeys(p.View.Config.Clusters), name)
	}
	return p.Transition.IsAhead(p.poll(g, version)) ||
		slices.ContainsFunc(names, unknown) && !p.publisher.isCaughtUp(time.Now().Add(-poll.CatchUpAge))
}
