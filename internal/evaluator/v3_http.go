package evaluator

import (
	"regexp"
	"time"

	accessv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// streamIdle is Envoy's default for a connection manager.
const streamIdle = 5 * time.Minute

func (r *v3Reader) http(at string, m *hcmv3.HttpConnectionManager, operation string, out *Listener) {
	r.only(at, m, "stat_prefix", "http_filters", "use_remote_address", "normalize_path", "strip_trailing_host_dot", "access_log", "stream_idle_timeout",
		"tracing", "http_protocol_options", "rds", "route_config", "upgrade_configs", "scheme_header_transformation")
	if m.GetSchemeHeaderTransformation() != nil {
		// A request of the evaluator has the scheme of its connection, which is what the
		// proxy writes over a scheme that a client sends.
		r.only(at, m.GetSchemeHeaderTransformation(), "scheme_to_overwrite")
	}
	out.UseRemoteAddress = m.GetUseRemoteAddress().GetValue()
	out.AccessLog = r.accessLog(at, m.GetAccessLog())
	out.Idle = duration(m.GetStreamIdleTimeout(), streamIdle)
	if m.GetTracing() != nil {
		r.only(at, m.GetTracing())
		out.Tracing = operation
	}
	out.HTTP = &HTTP{AbsoluteURLs: true, StripDot: m.GetStripTrailingHostDot()}
	for _, u := range m.GetUpgradeConfigs() {
		r.only(at, u, "upgrade_type")
		r.require(u.GetUpgradeType() == "websocket", at, "upgrade %v is not known", u)
		out.HTTP.WebSockets = true
	}
	if o := m.GetHttpProtocolOptions(); o != nil {
		r.only(at, o, "allow_absolute_url")
		out.HTTP.AbsoluteURLs = o.GetAllowAbsoluteUrl() == nil || o.GetAllowAbsoluteUrl().GetValue()
	}
	if rds := m.GetRds(); rds != nil {
		r.only(at, rds, "route_config_name", "config_source")
		hosts, ok := r.tables[rds.GetRouteConfigName()]
		out.HTTP.IgnorePort = r.ignorePort[rds.GetRouteConfigName()]
		r.require(ok, at, "there is no answer for its table %s", rds.GetRouteConfigName())
		out.HTTP.VirtualHosts = hosts
	} else {
		out.HTTP.VirtualHosts = r.table(at, m.GetRouteConfig())
		out.HTTP.IgnorePort = m.GetRouteConfig().GetIgnorePortInHostMatching()
	}
	r.httpFilters(at, m.GetHttpFilters(), out.HTTP)
}

// httpFilters reads access by host, cors, fault and the router, in that order.
func (r *v3Reader) httpFilters(at string, filters []*hcmv3.HttpFilter, out *HTTP) {
	last := len(filters) - 1
	for i, f := range filters {
		r.only(at, f, "name", "typed_config")
		message, err := f.GetTypedConfig().UnmarshalNew()
		if err != nil {
			r.fail(at, "%v", err)
			continue
		}
		if access, ok := message.(*rbacv3.RBAC); ok {
			r.require(i == 0, at, "the access filter must be the first")
			out.Hosts = r.hostsAllowed(at, access)
			r.httpFilters(at, filters[1:], out)
			return
		}
		r.only(at, message)
		switch message.(type) {
		case *corsv3.Cors:
			r.require(i == 0 && f.GetName() == corsFilter, at, "cors must be the first filter, found %s", f.GetName())
			out.CORS = true
		case *faultv3.HTTPFault:
			r.require(f.GetName() == faultFilter, at, "routes do not reach a fault filter called %s", f.GetName())
			out.RouteFaults = true
		case *routerv3.Router:
			r.require(i == last, at, "the router must be the last filter")
		default:
			r.fail(at, "filter %s is not known", f.GetName())
		}
	}
	r.require(last >= 0 && filters[last].GetTypedConfig().MessageIs(&routerv3.Router{}), at, "must have a router")
}

// hostsAllowed returns the expression that a Host header must match.
func (r *v3Reader) hostsAllowed(at string, access *rbacv3.RBAC) *regexp.Regexp {
	r.only(at, access, "rules")
	r.require(access.GetRules().GetAction() == accessv3.RBAC_DENY && len(access.GetRules().GetPolicies()) == 1, at, "access by other rules is not known here")
	for _, policy := range access.GetRules().GetPolicies() {
		for _, p := range policy.GetPermissions() {
			header := p.GetNotRule().GetHeader()
			r.require(header.GetName() == ":authority", at, "access by other headers is not known here")
			return r.regex(at, header.GetStringMatch().GetSafeRegex().GetRegex())
		}
	}
	return nil
}

func (r *v3Reader) fault(at string, f *faultv3.HTTPFault) *Fault {
	r.only(at, f, "delay", "abort")
	out := &Fault{}
	if d := f.GetDelay(); d != nil {
		r.only(at, d, "fixed_delay", "percentage")
		out.Delay, out.DelayPerMillion = d.GetFixedDelay().AsDuration(), r.perMillion(at, d.GetPercentage())
	}
	if a := f.GetAbort(); a != nil {
		r.only(at, a, "http_status", "grpc_status", "percentage")
		out.AbortGRPC = int(a.GetGrpcStatus())
		out.AbortStatus, out.AbortPerMillion = int(a.GetHttpStatus()), r.perMillion(at, a.GetPercentage())
	}
	return out
}

func (r *v3Reader) perMillion(at string, p *typev3.FractionalPercent) int {
	switch p.GetDenominator() {
	case typev3.FractionalPercent_HUNDRED:
		return int(p.GetNumerator()) * onePercent
	case typev3.FractionalPercent_MILLION:
		return int(p.GetNumerator())
	}
	r.fail(at, "parts of %s are not known here", p.GetDenominator())
	return 0
}
