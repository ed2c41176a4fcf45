package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/wire"
)

// Reviews report what the server can do. There are no identities, so everybody who
// reaches the server may do all of it.
const (
	reviewsVersion    = "authorization.k8s.io/v1"
	accessReviewsPath = "/apis/" + reviewsVersion + "/selfsubjectaccessreviews"
	rulesReviewsPath  = "/apis/" + reviewsVersion + "/selfsubjectrulesreviews"
)

var (
	reviews = resourceList(reviewsVersion,
		metav1.APIResource{Name: "selfsubjectaccessreviews", SingularName: "selfsubjectaccessreview", Kind: "SelfSubjectAccessReview", Verbs: metav1.Verbs{"create"}},
		metav1.APIResource{Name: "selfsubjectrulesreviews", SingularName: "selfsubjectrulesreview", Kind: "SelfSubjectRulesReview", Verbs: metav1.Verbs{"create"}},
	)
	reviewParams = wire.Params("dryRun", "fieldManager", "fieldValidation")
	// kubectl knows these types and sends them in protobuf, which no other path
	// accepts.
	reviewTypes = append(slices.Clone(wire.ObjectTypes), runtime.ContentTypeProtobuf)
	reviewCodec = sync.OnceValue(func() *protobuf.Serializer {
		scheme := runtime.NewScheme()
		utilruntime.Must(authorization.AddToScheme(scheme))
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
	switch resource, path := review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes; {
	case (resource == nil) == (path == nil):
		return wire.BadRequest("spec: must have either resourceAttributes or nonResourceAttributes")
	case resource != nil:
		review.Status = reviewOf(resource)
	default:
		review.Status.Allowed = s.router.Match(chi.NewRouteContext(), strings.ToUpper(path.Verb), path.Path)
		if !review.Status.Allowed {
			review.Status.Reason = fmt.Sprintf("%s is not possible on %s", path.Verb, path.Path)
		}
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
	for _, list := range catalogue() {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		if name != "*" && asked.Group != "*" && asked.Group != group {
			continue
		}
		for _, r := range list.APIResources {
			if name != "*" && name != r.Name {
				continue
			}
			found = true
			if asked.Verb == "*" || slices.Contains(r.Verbs, asked.Verb) {
				return authorization.SubjectAccessReviewStatus{Allowed: true, Reason: "whoever reaches this server may do all that it can"}
			}
		}
	}
	if !found {
		return authorization.SubjectAccessReviewStatus{Reason: fmt.Sprintf("there is no resource %q in group %q here", name, asked.Group)}
	}
	return authorization.SubjectAccessReviewStatus{Reason: fmt.Sprintf("nobody can %s %s", asked.Verb, name)}
}

// rulesReview answers a POST that asks for everything that the caller may do.
func (s *Server) rulesReview(w http.ResponseWriter, r *http.Request) error {
	var review authorization.SelfSubjectRulesReview
	if err := readReview(r, &review); err != nil {
		return err
	}
	review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectRulesReview", APIVersion: reviewsVersion}
	review.Status.NonResourceRules = []authorization.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}}
	for _, list := range catalogue() {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			review.Status.ResourceRules = append(review.Status.ResourceRules, authorization.ResourceRule{
				Verbs: r.Verbs, APIGroups: []string{group}, Resources: []string{r.Name},
			})
		}
	}
	return writeReview(w, r, review)
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
			return wire.BadRequest("body: must be a review of %s: %v", reviewsVersion, err)
		}
		return nil
	}
	if err := schema.CheckAliases(body); err != nil {
		return wire.BadRequest("body: %v", err)
	}
	if err := yaml.UnmarshalStrict(body, review); err != nil {
		return wire.BadRequest("body: must be a review of %s: %v", reviewsVersion, err)
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
