package authz

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/identity"
)

// The verbs of reads.
var readVerbs = []string{"get", "list", "watch"}

// Attributes describe a requested access: a verb on a resource, or on a path that is no
// resource. They have the meaning that they have in Kubernetes.
type Attributes struct {
	Verb        string
	Group       string
	Resource    string // plural; "" for a path
	Subresource string
	Namespace   string // "" for all of them, and for a resource without namespaces
	Name        string // "" for a collection
	Path        string
	// Unnamed says that a resource is asked for although Resource is "", which only reviews do.
	// Rules for all resources allow it.
	Unnamed bool
}

// isPath reports whether a path is asked for.
func (a Attributes) isPath() bool { return a.Resource == "" && !a.Unnamed }

// ResourceName returns the resource with its subresource, as rules have it.
func (a Attributes) ResourceName() string {
	if a.Subresource == "" {
		return a.Resource
	}
	return a.Resource + "/" + a.Subresource
}

// String describes the attributes as the end of "cannot".
func (a Attributes) String() string {
	if a.isPath() {
		return fmt.Sprintf("%s path %q", a.Verb, a.Path)
	}
	out := fmt.Sprintf("%s resource %q in API group %q", a.Verb, a.ResourceName(), a.Group)
	if a.Namespace != "" {
		return out + fmt.Sprintf(" in the namespace %q", a.Namespace)
	}
	return out + " at the cluster scope"
}

// Decision says whether an access is allowed, and why.
type Decision struct {
	Allowed bool
	Reason  string
}

// Authorizer decides whether an identity has an access. It is safe for concurrent use.
type Authorizer interface {
	Authorize(ctx context.Context, who identity.Identity, a Attributes) Decision
}

// Open allows everything to every identity with a proof. Without a proof, the groups
// decide: identity.Masters may do everything, and Readers may read.
type Open struct{}

// Readers is a group of requests without a proof that may only read.
const Readers = "system:anonymous-readers"

// Authorize implements Authorizer.
func (Open) Authorize(_ context.Context, who identity.Identity, a Attributes) Decision {
	switch {
	case who.IsProved() || who.In(identity.Masters):
		return Decision{Allowed: true, Reason: "there are no roles: every known user may do everything"}
	case who.In(Readers) && slices.Contains(readVerbs, a.Verb) && !strings.HasPrefix(a.Resource, "secrets"):
		return Decision{Allowed: true, Reason: "everybody may read"}
	}
	return Decision{Reason: "requests without a proof may not do this"}
}

// On returns the attributes of a verb on an object, or on a collection if the key has no
// name. A kind that is not known has no group: nobody has a right to it but by a *.
func On(verb string, key schema.Key) Attributes {
	a := Attributes{Verb: verb, Resource: strings.ToLower(key.Kind), Namespace: key.Namespace, Name: key.Name}
	if kind, ok := schema.KindByName(key.Kind); ok {
		a.Group, a.Resource = kind.Group, kind.Plural
		if kind.Cluster {
			a.Namespace = ""
		}
	}
	return a
}
