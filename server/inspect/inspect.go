package inspect

import (
	"log/slog"
	"net/http"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// Options configure a Handler.
type Options struct {
	Discovery *discovery.Publisher
	// Reads and Store have the objects; MaxTransaction is the number of operations that
	// Store accepts in one transaction.
	Reads          store.Reader
	Store          store.Interface
	MaxTransaction int
	// Peers are the other replicas; nil if there are none.
	Peers      replica.Peers
	Reporter   *status.Reporter
	Statuses   *status.Board
	Bodies     *intake.Decoder
	LargeReads *answer.LargeReads
	Log        *slog.Logger
	// Guard decides which problems callers may see.
	Guard authz.Guard
}

// Handler answers questions about the configuration in force. It is safe for concurrent
// use.
type Handler struct{ opts Options }

// New returns a Handler. It starts nothing.
func New(opts Options) *Handler { return &Handler{opts} }

// Endpoints returns the endpoints of questions.
func (h *Handler) Endpoints() []openapi.Endpoint {
	ask := func(path string, handler wire.Handler, params []string, answer any, doc string) openapi.Endpoint {
		return openapi.Endpoint{Method: http.MethodGet, Path: path, Handler: handler, Params: params, Success: 200, Answer: openapi.AnswerOf(answer), Doc: doc}
	}
	return []openapi.Endpoint{
		ask(referencesPath, h.references, referenceParams, referencesAnswer{}, "Lists the references from an object, and to it."),
		ask(reachPath, h.reach, reachParams, explain.Reach{}, "Says who can call whom."),
		ask(ProxiesPath, h.proxies, proxyParams, []proxy{}, "Lists the connected proxies."),
		ask(StandingsPath, h.standings, standingsParams, status.Report{}, "Reports how many proxies of this replica have each object, and run it."),
		ask(ProxiesPath+"/{node}", h.proxy, proxyParams, []proxy{}, "Lists the connections of one proxy."),
		ask(ProxiesPath+"/{node}/config/{type}", h.proxyConfig, configParams, inspected{}, "Returns the resources of one type, or of all types, that a proxy is sent."),
		ask(ProxiesPath+"/{node}/route", h.proxyRoute, routeParams, struct {
			inspected
			*explain.Explanation
		}{}, "Explains what a proxy does with a request, or lists its routes."),
		{Method: http.MethodPost, Path: previewPath, Handler: h.opts.Bodies.Admitted(intake.Work{}, h.preview), Params: previewParams,
			Body: &openapi.Content{Media: wire.ObjectTypes, Shape: openapi.AnyShape}, Success: 200, Answer: openapi.AnswerOf(previewed{}),
			Doc: "Shows how objects would change the configuration of proxies."},
	}
}
