package objects

import (
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/pilot-api/pilot-api/server/dryrun"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// beginDelete is beginWrite for a DELETE. It checks grace periods and propagation
// policies as Kubernetes does and ignores them: no config object has an owner
// (docs/decisions/015-deletion.md).
func (k *resource) beginDelete(r *http.Request, allowed []string) (wire.Format, store.Interface, metav1.DeleteOptions, error) {
	f, writes, err := k.beginWrite(r, allowed)
	if err != nil {
		return 0, nil, metav1.DeleteOptions{}, err
	}
	opts, err := readDeleteOptions(r)
	if err == nil {
		err = checkPropagation(wire.Query(r), opts)
	}
	if len(opts.DryRun) > 0 {
		writes = dryrun.New(k.opts.Store, k.opts.MaxTransaction)
	}
	return f, writes, opts, err
}

// readDeleteOptions decodes the body of a DELETE. The body is optional.
func readDeleteOptions(r *http.Request) (metav1.DeleteOptions, error) {
	var opts metav1.DeleteOptions
	if r.ContentLength == 0 {
		return opts, nil
	}
	body, _, err := intake.ReadBody(r, wire.ObjectTypes...)
	if err != nil || len(body) == 0 {
		return opts, err
	}
	if _, err := intake.ReadYAMLStrictly(body, &opts); err != nil {
		return opts, wire.BadRequest("body: must be a DeleteOptions object or nothing: %v", err)
	}
	for _, word := range opts.DryRun {
		if word != metav1.DryRunAll {
			return opts, wire.BadRequest("dryRun: must be %s, found %q", metav1.DryRunAll, word)
		}
	}
	return opts, nil
}

// checkPropagation checks the propagation that body and query ask for together.
func checkPropagation(q url.Values, opts metav1.DeleteOptions) error {
	if q.Has("propagationPolicy") {
		opts.PropagationPolicy = (*metav1.DeletionPropagation)(&q["propagationPolicy"][0])
	}
	if q.Has("orphanDependents") {
		orphan, err := wire.BoolParam(q, "orphanDependents")
		if err != nil {
			return err
		}
		//lint:ignore SA1019 Older clients say it so.
		opts.OrphanDependents = &orphan
	}
	if problems := validation.ValidateDeleteOptions(&opts); len(problems) > 0 {
		return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", problems)
	}
	return nil
}

// Preconditions returns the preconditions of a deletion. It refuses an empty value, because
// any object would satisfy it.
func Preconditions(given *metav1.Preconditions) (store.Preconditions, error) {
	var pre store.Preconditions
	if given == nil {
		return pre, nil
	}
	if given.UID != nil {
		if pre.UID = string(*given.UID); pre.UID == "" {
			return pre, wire.BadRequest("preconditions.uid: must not be empty")
		}
	}
	if given.ResourceVersion != nil {
		if pre.ResourceVersion = *given.ResourceVersion; pre.ResourceVersion == "" {
			return pre, wire.BadRequest("preconditions.resourceVersion: must not be empty")
		}
	}
	return pre, nil
}
