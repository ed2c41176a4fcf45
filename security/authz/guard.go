package authz

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/identity"
)

// Guard asks an Authorizer on behalf of the identity of a context.
type Guard struct{ Authorizer }

// Check returns nil if the identity of ctx may do something, and otherwise an error that
// answers 403. The error has the text of Kubernetes, and does not reveal which objects
// exist.
func (g Guard) Check(ctx context.Context, a Attributes) error {
	who := identity.Of(ctx)
	if d := g.Authorize(ctx, who, a); !d.Allowed {
		return Forbidden(who, a, d.Reason)
	}
	return nil
}

// Denied returns the error of Check for something that Allows did not allow. It is never nil.
func (g Guard) Denied(ctx context.Context, a Attributes) error {
	who := identity.Of(ctx)
	return Forbidden(who, a, g.Authorize(ctx, who, a).Reason)
}

// CheckScope is Check for a verb on the objects of a kind, or of all schema.MeshKinds if kind
// is nil, in a namespace or, with "", in all of them.
func (g Guard) CheckScope(ctx context.Context, verb string, kind *schema.Kind, namespace string) error {
	return g.checkKinds(ctx, verb, "", kind, namespace)
}

// CheckHistory is CheckScope for the earlier states of the objects: list, and get on their
// histories.
func (g Guard) CheckHistory(ctx context.Context, kind *schema.Kind, namespace string) error {
	if err := g.CheckScope(ctx, "list", kind, namespace); err != nil {
		return err
	}
	return g.checkKinds(ctx, "get", "history", kind, namespace)
}

func (g Guard) checkKinds(ctx context.Context, verb, subresource string, kind *schema.Kind, namespace string) error {
	kinds := []*schema.Kind{kind}
	if kind == nil {
		kinds = schema.MeshKinds()
	}
	for _, one := range kinds {
		a := On(verb, schema.Key{Kind: one.Kind, Namespace: namespace})
		a.Subresource = subresource
		if err := g.Check(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// Allows is Check without the text of the error.
func (g Guard) Allows(ctx context.Context, a Attributes) bool {
	return g.Authorize(ctx, identity.Of(ctx), a).Allowed
}

// Forbidden returns the error that answers a request of an identity with 403.
func Forbidden(who identity.Identity, a Attributes, reason string) error {
	text := fmt.Sprintf("User %q cannot %s", who.Name, a)
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(runtimeschema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, errors.New(text))
}
