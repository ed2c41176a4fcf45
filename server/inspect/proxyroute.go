package inspect

import (
	"net/http"
	"net/url"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/server/wire"
)

// proxyRoute explains what the proxy does with a request. Without a url it answers
// with all routes of the proxy.
func (h *Handler) proxyRoute(w http.ResponseWriter, r *http.Request) error {
	request, asked, err := requestOf(wire.Query(r))
	if err != nil {
		return err
	}
	return h.inspect(w, r, "route", func(i *discovery.Inspection, head inspected) (any, error) {
		if !asked {
			return summaryOf(i, head, []string{"routes"}), nil
		}
		return struct {
			inspected
			*explain.Explanation
		}{head, i.Explain().Ask(request)}, nil
	})
}

// requestOf returns the request that a query asks about, if any.
func requestOf(q url.Values) (request explain.Request, asked bool, err error) {
	once := url.Values{}
	for name, values := range q {
		if name != "header" { // it may repeat
			once[name] = values
		}
	}
	if err := wire.CheckParams(once, routeParams); err != nil {
		return request, false, err
	}
	if !q.Has("url") {
		if q.Has("method") || q.Has("header") {
			return request, false, wire.BadRequest("method and header are of a request, whose url is missing")
		}
		return request, false, nil
	}
	headers, err := explain.ParseHeaders(q["header"])
	if err == nil {
		request, err = explain.NewRequest(q.Get("method"), q.Get("url"), headers)
	}
	if err != nil {
		return request, true, wire.BadRequest("%v", err)
	}
	return request, true, nil
}
