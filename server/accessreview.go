package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/wire"
)

// Reviews report what identities may do. Without roles they report what the server can do,
// because every known identity may then do all of it.
const (
	reviewsGroup       = "authorization.k8s.io"
	reviewsVersion     = reviewsGroup + "/v1"
	accessReviewsPath  = "/apis/" + reviewsVersion + "/selfsubjectaccessreviews"
	rulesReviewsPath   = "/apis/" + reviewsVersion + "/selfsubjectrulesreviews"
	subjectReviewsPath = "/apis/" + reviewsVersion + "/subjectaccessreviews"

	whoGroup   = "authentication.k8s.io"
	whoVersion = whoGroup + "/v1"
	whoPath    = "/apis/" + whoVersion + "/selfsubjectreviews"
)

var (
	reviews = resourceList(reviewsVersion,
		metav1.APIResource{Name: "selfsubjectaccessreviews", SingularName: "selfsubjectaccessreview", Kind: "SelfSubjectAccessReview", Verbs: metav1.Verbs{"create"}},
		metav1.APIResource{Name: "selfsubjectrulesreviews", SingularName: "selfsubjectrulesreview", Kind: "SelfSubjectRulesReview", Verbs: metav1.Verbs{"create"}},
		metav1.APIResource{Name: "subjectaccessreviews", SingularName: "subjectaccessreview", Kind: "SubjectAccessReview", Verbs: metav1.Verbs{"create"}},
	)
	whoReviews = resourceList(whoVersion,
		metav1.APIResource{Name: "selfsubjectreviews", SingularName: "selfsubjectreview", Kind: "SelfSubjectReview", Verbs: metav1.Verbs{"create"}},
	)
	reviewParams = wire.Params("dryRun", "fieldManager", "fieldValidation")
	// kubectl knows these types and sends them in protobuf, which no other path
	// accepts.
	reviewTypes = append(slices.Clone(wire.ObjectTypes), runtime.ContentTypeProtobuf)
	reviewCodec = sync.OnceValue(func() *protobuf.Serializer {
		scheme := runtime.NewScheme()
		utilruntime.Must(authorization.AddToScheme(scheme))
		utilruntime.Must(authentication.AddToScheme(scheme))
		return protobuf.NewSerializer(scheme, scheme)
	})
)

// accessReview answers a POST that asks whether the caller may do something.
func (s *Server) accessReview(w http.ResponseWriter, r *http.Request) error {
	var review authorization.SelfSubjectAccessReview
	if err := readReview(r, &review); err != nil {
		return err
	}
	review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: reviewsVersion}
	var err error
	review.Status, err = s.review(r.Context(), identity.Of(r.Context()), review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	if err != nil {
		return err
	}
	return writeReview(w, r, review)
}

// subjectReview answers a POST that asks whether somebody else may do something.
func (s *Server) subjectReview(w http.ResponseWriter, r *http.Request) error {
	var review authorization.SubjectAccessReview
	if err := readReview(r, &review); err != nil {
		return err
	}
	review.TypeMeta = metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: reviewsVersion}
	if review.Spec.User == "" && len(review.Spec.Groups) == 0 {
		return wire.BadRequest("spec: must have a user or groups")
	}
	who := identity.Identity{Name: review.Spec.User, UID: review.Spec.UID, Groups: review.Spec.Groups, By: identity.ByCertificate}
	var err error
	review.Status, err = s.review(r.Context(), who, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	if err != nil {
		return err
	}
	return writeReview(w, r, review)
}

// review decides about a resource or a path.
func (s *Server) review(ctx context.Context, who identity.Identity, resource *authorization.ResourceAttributes, path *authorization.NonResourceAttributes) (authorization.SubjectAccessReviewStatus, error) {
	switch {
	case (resource == nil) == (path == nil):
		return authorization.SubjectAccessReviewStatus{}, wire.BadRequest("spec: must have either resourceAttributes or nonResourceAttributes")
	case s.opts.Roles == nil:
		return s.reviewOfAll(resource, path), nil
	case path != nil:
		return reviewStatus(s.guard.Authorize(ctx, who, authz.Attributes{Verb: path.Verb, Path: path.Path})), nil
	}
	return reviewStatus(s.guard.Authorize(ctx, who, authz.Attributes{
		Verb: resource.Verb, Group: resource.Group, Resource: resource.Resource, Subresource: resource.Subresource,
		Namespace: resource.Namespace, Name: resource.Name, Unnamed: resource.Resource == "",
	})), nil
}

func reviewStatus(d authz.Decision) authorization.SubjectAccessReviewStatus {
	return authorization.SubjectAccessReviewStatus{Allowed: d.Allowed, Reason: d.Reason}
}

// reviewOfAll is review without roles.
func (s *Server) reviewOfAll(resource *authorization.ResourceAttributes, path *authorization.NonResourceAttributes) (out authorization.SubjectAccessReviewStatus) {
	if resource != nil {
		return reviewOf(resource)
	}
	if out.Allowed = s.router.Match(chi.NewRouteContext(), strings.ToUpper(path.Verb), path.Path); !out.Allowed {
		out.Reason = fmt.Sprintf("%s is not possible on %s", path.Verb, path.Path)
	}
	return out
}

// whoReview answers a POST that asks who the caller is.
func (s *Server) whoReview(w http.ResponseWriter, r *http.Request) error {
	var review authentication.SelfSubjectReview
	if err := readReview(r, &review); err != nil {
		return err
	}
	who := identity.Of(r.Context())
	review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectReview", APIVersion: whoVersion}
	review.Status.UserInfo = authentication.UserInfo{Username: who.Name, UID: who.UID, Groups: who.Groups}
	for name, values := range who.Extra {
		if review.Status.UserInfo.Extra == nil {
			review.Status.UserInfo.Extra = map[string]authentication.ExtraValue{}
		}
		review.Status.UserInfo.Extra[name] = values
	}
	return writeReview(w, r, review)
}

// reviewOf looks for a resource that has the verb. A * matches any verb or group;
// as a resource it matches any resource of any group.
func reviewOf(asked *authorization.ResourceAttributes) authorization.SubjectAccessReviewStatus {
	name := asked.Resource
	if asked.Subresource != "" {
		name += "/" + asked.Subresource
	}
	found := false
	for _, list := range everything() {
		group := groupOf(list)
		if name != "*" && asked.Group != "*" && asked.Group != group {
			continue
		}
		for _, r := range list.APIResources {
			if name != "*" && name != r.Name {
				continue
			}
			found = true
			if asked.Verb == "*" || slices.Contains(r.Verbs, asked.Verb) {
				return authorization.SubjectAccessReviewStatus{Allowed: true, Reason: "everybody who reaches this server may do everything"}
			}
		}
	}
	if !found {
		return authorization.SubjectAccessReviewStatus{Reason: fmt.Sprintf("there is no resource %q in group %q here", name, asked.Group)}
	}
	return authorization.SubjectAccessReviewStatus{Reason: fmt.Sprintf("nobody can %s %s", asked.Verb, name)}
}

// groupOf returns the API group of a list of resources.
func groupOf(list metav1.APIResourceList) string {
	group, _, found := strings.Cut(list.GroupVersion, "/")
	if !found {
		return ""
	}
	return group
}

// rulesReview answers a POST that asks for everything that the caller may do.
func (s *Server) rulesReview(w http.ResponseWriter, r *http.Request) error {
	var review authorization.SelfSubjectRulesReview
	if err := readReview(r, &review); err != nil {
		return err
	}
	review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectRulesReview", APIVersion: reviewsVersion}
	if s.opts.Roles != nil {
		review.Status = rulesStatus(s.opts.Roles.Rules(identity.Of(r.Context()), review.Spec.Namespace))
		return writeReview(w, r, review)
	}
	review.Status.NonResourceRules = []authorization.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}}
	for _, list := range everything() {
		group := groupOf(list)
		for _, r := range list.APIResources {
			review.Status.ResourceRules = append(review.Status.ResourceRules, authorization.ResourceRule{
				Verbs: r.Verbs, APIGroups: []string{group}, Resources: []string{r.Name},
			})
		}
	}
	return writeReview(w, r, review)
}

// rulesStatus returns rules as a review shows them.
func rulesStatus(rules []rbac.PolicyRule) authorization.SubjectRulesReviewStatus {
	out := authorization.SubjectRulesReviewStatus{ResourceRules: []authorization.ResourceRule{}, NonResourceRules: []authorization.NonResourceRule{}}
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			out.NonResourceRules = append(out.NonResourceRules, authorization.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
			continue
		}
		out.ResourceRules = append(out.ResourceRules, authorization.ResourceRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
		})
	}
	return out
}

// readReview decodes the body into review. The body may leave out its kind and
// apiVersion.
func readReview(r *http.Request, review runtime.Object) error {
	if err := wire.CheckParams(wire.Query(r), reviewParams); err != nil {
		return err
	}
	body, media, err := intake.ReadBody(r, reviewTypes...)
	if err != nil {
		return err
	}
	if media == runtime.ContentTypeProtobuf {
		if _, _, err := reviewCodec().Decode(body, nil, review); err != nil {
			return wire.BadRequest("body: must be a review of this kind: %v", err)
		}
		return nil
	}
	if err := schema.CheckAliases(body); err != nil {
		return wire.BadRequest("body: %v", err)
	}
	if err := yaml.UnmarshalStrict(body, review); err != nil {
		return wire.BadRequest("body: must be a review of this kind: %v", err)
	}
	return nil
}

func writeReview(w http.ResponseWriter, r *http.Request, review any) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML)
	if err != nil {
		return err
	}
	return answer.WriteValue(w, http.StatusCreated, f, review)
}
