package authority

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/security/ca"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// The paths of the endpoints.
const (
	Path            = "/apis/" + wire.RegistryVersion + "/authority"
	RotationPath    = Path + "/rotation"
	RevocationsPath = Path + "/revocations"
)

// Options configure a Handler. Bodies is required.
type Options struct {
	// CA is the authority; nil if the server has none.
	CA *ca.CA
	// Rotate does a step for all servers; nil if the authority is one that servers do not make.
	Rotate func(context.Context, ca.Step) error
	// Revoke ends a certificate for all servers, by its serial number; nil as Rotate. With force it
	// ends one that the authority does not know.
	Revoke func(ctx context.Context, serial string, force bool) error
	// Proxies returns the proxies of all replicas, with those that were connected and are not
	// now, and a text for each replica that does not answer. Nil if there are no proxies.
	Proxies func(http.ResponseWriter, *http.Request) (all []discovery.ProxyStatus, silent []string)
	Bodies  *intake.Decoder
}

// Handler answers requests about the authority. It is safe for concurrent use.
type Handler struct{ opts Options }

// New returns a Handler.
func New(opts Options) *Handler { return &Handler{opts} }

// Status is the answer to each request.
type Status struct {
	ca.Status
	// Proxies is the number of proxies that take the roots from the servers, and Trusting that
	// of those that have acknowledged all present ones.
	Proxies  int `json:"proxies"`
	Trusting int `json:"trusting"`
	// Blocked says why the next step would cut somebody off; empty if it would not.
	Blocked []string `json:"blocked,omitempty"`
}

// jsonType is the media type of bodies.
const jsonType = "application/json"

// rotation is the body of a request for a step.
type rotation struct {
	Step ca.Step `json:"step"`
	// Force does the step even if it cuts somebody off.
	Force bool `json:"force,omitempty"`
}

// Endpoints returns the endpoints.
func (h *Handler) Endpoints() []openapi.Endpoint {
	return []openapi.Endpoint{
		{
			Method: http.MethodGet, Path: Path, Handler: h.status, Success: 200, Answer: openapi.AnswerOf(Status{}), Failures: withoutAuthority,
			Doc: "Shows the roots of the certificate authority of the mesh, and the state of their rotation.",
		},
		{
			Method: http.MethodPost, Path: RotationPath, Handler: h.opts.Bodies.Admitted(intake.Work{}, h.rotate),
			Body: &openapi.Content{Media: []string{jsonType}, Shape: openapi.ShapeOf(rotation{})}, Success: 200, Answer: openapi.AnswerOf(Status{}), Failures: withoutAuthority,
			Doc: "Does a step of the rotation of the root: add, sign, drop or cancel. A step that would cut somebody off gets 409, unless force is true.",
		},
		{
			Method: http.MethodPost, Path: RevocationsPath, Handler: h.opts.Bodies.Admitted(intake.Work{}, h.revoke),
			Body: &openapi.Content{Media: []string{jsonType}, Shape: openapi.ShapeOf(revocation{})}, Success: 200, Answer: openapi.AnswerOf(Status{}), Failures: withoutAuthority,
			Doc: "Ends a certificate of a workload before its time, by its serial number. A number of which no present authority has issued a certificate gets 422, unless force is true.",
		},
	}
}

// withoutAuthority is the code of a server without an authority, or with one in files.
var withoutAuthority = []int{http.StatusMethodNotAllowed}

// errNone answers requests if there is no authority.
var errNone = wire.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
	"this server has no certificate authority: start it with --proxy-auth, and with --ca self or --ca files")

func (h *Handler) status(w http.ResponseWriter, r *http.Request) error {
	if err := wire.CheckParams(wire.Query(r), nil); err != nil {
		return err
	}
	if h.opts.CA == nil {
		return errNone
	}
	return answer.WriteJSON(w, r, h.look(w, r))
}

// look returns the present status.
func (h *Handler) look(w http.ResponseWriter, r *http.Request) Status {
	out := Status{Status: h.opts.CA.Status()}
	var all []discovery.ProxyStatus
	var silent []string
	if h.opts.Proxies != nil {
		all, silent = h.opts.Proxies(w, r)
	}
	out.count(all)
	if out.Next != "" {
		out.Blocked = h.blocking(out.Next, all, silent)
	}
	return out
}

func (h *Handler) blocking(step ca.Step, all []discovery.ProxyStatus, silent []string) []string {
	return h.opts.CA.Blocking(step, func(root string) []string { return append(slices.Clone(silent), missing(all, root)...) })
}

// read decodes the body of a request, which has no parameters.
func (h *Handler) read(r *http.Request, into any) error {
	if err := wire.CheckParams(wire.Query(r), nil); err != nil {
		return err
	}
	body, _, err := intake.ReadBody(r, jsonType)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return wire.BadRequest("body: %v", err)
	}
	return nil
}

// revocation is the body of a request to end a certificate.
type revocation struct {
	// Serial is the number in hexadecimal, with or without colons.
	Serial string `json:"serial"`
	// Force revokes a number of which no present authority has issued a certificate.
	Force bool `json:"force,omitempty"`
}

func (h *Handler) revoke(w http.ResponseWriter, r *http.Request) error {
	var asked revocation
	if err := h.read(r, &asked); err != nil {
		return err
	}
	switch {
	case h.opts.CA == nil:
		return errNone
	case h.opts.Revoke == nil:
		return wire.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the authority is in files (--ca files): revoke the certificate there, and delete the ServiceAccount of the workload")
	}
	err := h.opts.Revoke(r.Context(), asked.Serial, asked.Force)
	switch {
	case errors.Is(err, ca.ErrSerial):
		return wire.BadRequest("serial: %v", err)
	case errors.Is(err, ca.ErrForeign):
		return wire.Failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "serial: %v; with force it is revoked all the same", err)
	case errors.Is(err, ca.ErrTooManyRevoked):
		return wire.Failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "%v", err)
	case err != nil:
		return &store.Error{Kind: store.ErrUnavailable, Detail: err.Error()}
	}
	return answer.WriteJSON(w, r, h.look(w, r))
}

func (h *Handler) rotate(w http.ResponseWriter, r *http.Request) error {
	var asked rotation
	if err := h.read(r, &asked); err != nil {
		return err
	}
	if !slices.Contains(ca.Steps, asked.Step) {
		return wire.BadRequest("step: must be one of %v, found %q", ca.Steps, asked.Step)
	}
	switch {
	case h.opts.CA == nil:
		return errNone
	case h.opts.Rotate == nil:
		return wire.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "%v", ca.ErrNotOurs)
	}
	if err := h.step(w, r, asked); err != nil {
		return err
	}
	return answer.WriteJSON(w, r, h.look(w, r))
}

// step does a step unless it would cut somebody off.
func (h *Handler) step(w http.ResponseWriter, r *http.Request, asked rotation) error {
	next := h.opts.CA.Status().Next
	if asked.Step != next && asked.Step != ca.Cancel {
		return conflict(next)
	}
	if !asked.Force {
		var all []discovery.ProxyStatus
		var silent []string
		if h.opts.Proxies != nil {
			all, silent = h.opts.Proxies(w, r)
		}
		if reasons := h.blocking(asked.Step, all, silent); len(reasons) > 0 {
			return wire.Failure(http.StatusConflict, metav1.StatusReasonConflict, "%v", &ca.BlockedError{Step: asked.Step, Reasons: reasons})
		}
	}
	err := h.opts.Rotate(r.Context(), asked.Step)
	switch {
	case errors.Is(err, ca.ErrNoStep):
		return conflict(h.opts.CA.Status().Next)
	case err != nil:
		return &store.Error{Kind: store.ErrUnavailable, Detail: err.Error()}
	}
	return nil
}

func conflict(next ca.Step) error {
	return wire.Failure(http.StatusConflict, metav1.StatusReasonConflict, "%v: %s comes next", ca.ErrNoStep, next)
}
