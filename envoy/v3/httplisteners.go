package v3

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	accessv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

const (
	httpConnectionManager = "envoy.filters.network.http_connection_manager"
	accessFilter          = "envoy.filters.http.rbac"
	corsFilter            = "envoy.filters.http.cors"
	faultFilter           = "envoy.filters.http.fault"
	routerFilter          = "envoy.filters.http.router"
	fileAccessLog         = "envoy.access_loggers.file"

	webSocket = "websocket" // the type of an upgrade
)

func connectionManager(h *ir.HTTPListener, tls bool, from Source) (*hcmv3.HttpConnectionManager, diag.List) {
	out := &hcmv3.HttpConnectionManager{
		StatPrefix:       envoy.StatPrefixHTTP,
		HttpFilters:      httpFilters(h, from.asksFor(h)),
		UseRemoteAddress: wrapperspb.Bool(h.UseRemoteAddress),
		// Routes and services see the same path: /x/../admin and /%61dmin are
		// /admin to both. Slashes are not merged.
		NormalizePath: wrapperspb.Bool(true),
		// Routes and services see a host without its final dot: example.com. is
		// example.com.
		StripTrailingHostDot: true,
		AccessLog:            accessLog(h.AccessLog),
		// The route sets the timeout, and 0 means none. By default v3 ends
		// quiet streams after 5 minutes.
		StreamIdleTimeout: durationpb.New(0),
		// As in Istio, unless a route sets it.
		UpgradeConfigs: []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: webSocket}},
	}
	if h.Access != nil && h.Access.Paths {
		// A path that is compared has one spelling.
		out.MergeSlashes = true
		out.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_REJECT_REQUEST
	}
	if from.asksFor(h) {
		out.StreamIdleTimeout = durationpb.New(maxAsking)
	}
	if h.UseRemoteAddress {
		out.SchemeHeaderTransformation = schemeOf(tls)
	}
	if h.Tracing {
		out.Tracing = &hcmv3.HttpConnectionManager_Tracing{}
	}
	if h.ForwardProxy {
		out.HttpProtocolOptions = &corev3.Http1ProtocolOptions{AllowAbsoluteUrl: wrapperspb.Bool(true)}
	}
	if h.Inline == nil {
		out.RouteSpecifier = &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
			RouteConfigName: h.Table,
			ConfigSource:    from.config(),
		}}
		return out, nil
	}
	routes, problems := Routes(h.Inline)
	out.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes}
	return out, problems
}

// schemeOf sets the scheme of requests to that of their connection, whatever :scheme a
// client sends, so that a match on the scheme holds. With it Envoy sets x-forwarded-proto.
// An edge does that anyway. A sidecar must not change x-forwarded-proto, because services
// pass on the value of the original client.
func schemeOf(tls bool) *corev3.SchemeHeaderTransformation {
	scheme := "http"
	if tls {
		scheme = "https"
	}
	return &corev3.SchemeHeaderTransformation{
		Transformation: &corev3.SchemeHeaderTransformation_SchemeToOverwrite{SchemeToOverwrite: scheme},
	}
}

// onlyHosts refuses requests whose Host header is not a valid host.
func onlyHosts() *rbacv3.RBAC {
	host := &routev3.HeaderMatcher{
		Name:                 ":authority",
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: exactlyOrRegex("", ir.HostPattern+ir.AnyPort)},
	}
	isHost := &accessv3.Permission{Rule: &accessv3.Permission_Header{Header: host}}
	return &rbacv3.RBAC{Rules: &accessv3.RBAC{
		Action: accessv3.RBAC_DENY,
		Policies: map[string]*accessv3.Policy{"host-header": {
			Permissions: []*accessv3.Permission{{Rule: &accessv3.Permission_NotRule{NotRule: isHost}}},
			Principals:  []*accessv3.Principal{{Identifier: &accessv3.Principal_Any{Any: true}}},
		}},
	}}
}

// httpFilters returns the filters, which are the same for every listener of a direction;
// routes have the details. Otherwise the first rule with a fault would make Envoy drain a
// listener.
func httpFilters(h *ir.HTTPListener, asks bool) []*hcmv3.HttpFilter {
	var out []*hcmv3.HttpFilter
	if h.StrictHosts {
		out = append(out, httpFilter(accessFilter, hostsAlone))
	}
	out = append(out, tokenFilters(h.Tokens)...)
	out = append(out, accessFilters(h.Access)...)
	if asks {
		out = append(out, httpFilter(onDemandFilter, asking))
	}
	return append(out,
		httpFilter(corsFilter, noCORS),
		httpFilter(faultFilter, noFault),
		httpFilter(routerFilter, routing),
	)
}

var (
	hostsAlone = fix(onlyHosts())

	noCORS  = fix(&corsv3.Cors{})
	noFault = fix(&faultv3.HTTPFault{})
	routing = fix(&routerv3.Router{})
)

func httpFilter(name string, config *anypb.Any) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}}
}

// accessLog is a file in Envoy's default format.
func accessLog(path string) []*accesslogv3.AccessLog {
	if path == "" {
		return nil
	}
	return []*accesslogv3.AccessLog{{
		Name:       fileAccessLog,
		ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: typed(&filev3.FileAccessLog{Path: path})},
	}}
}
