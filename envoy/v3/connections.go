package v3

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

const httpOptionsKey = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// protocolOptions returns nil for plain HTTP/1.1 and TCP.
func protocolOptions(c *ir.Cluster) map[string]*anypb.Any {
	common := commonOptions(c)
	conns := c.Connections
	plain := common == nil && !conns.SameProtocol && namesOfRequests(c.TLS) == nil
	switch {
	case plain && !c.HTTP2:
		return nil
	case plain && conns.MaxStreams == 0 && conns.Ping == nil:
		return map[string]*anypb.Any{httpOptionsKey: http2Only}
	}
	return map[string]*anypb.Any{httpOptionsKey: typed(httpOptions(c, common))}
}

// namesOfRequests returns nil if the TLS settings do not depend on the host of requests.
func namesOfRequests(t *ir.ClientTLS) *corev3.UpstreamHttpProtocolOptions {
	if t == nil || !t.AutoSNI && !t.AutoSAN {
		return nil
	}
	return &corev3.UpstreamHttpProtocolOptions{AutoSni: t.AutoSNI, AutoSanValidation: t.AutoSAN}
}

var http2Only = fix(httpOptions(&ir.Cluster{HTTP2: true}, nil))

// commonOptions returns the options of all versions of HTTP, or nil for Envoy's defaults.
func commonOptions(c *ir.Cluster) *corev3.HttpProtocolOptions {
	out := &corev3.HttpProtocolOptions{
		MaxRequestsPerConnection: positive(c.MaxRequestsPerConnection),
		IdleTimeout:              said(c.Connections.IdleTimeout),
		MaxConnectionDuration:    positiveDuration(c.Connections.MaxDuration),
	}
	if out.MaxRequestsPerConnection == nil && out.IdleTimeout == nil && out.MaxConnectionDuration == nil {
		return nil
	}
	return out
}

func httpOptions(c *ir.Cluster, common *corev3.HttpProtocolOptions) *httpv3.HttpProtocolOptions {
	out := &httpv3.HttpProtocolOptions{CommonHttpProtocolOptions: common, UpstreamHttpProtocolOptions: namesOfRequests(c.TLS)}
	if c.Connections.SameProtocol {
		out.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &httpv3.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions: &corev3.Http1ProtocolOptions{}, Http2ProtocolOptions: http2Options(c.Connections),
			},
		}
		return out
	}
	explicit := &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{},
	}
	if c.HTTP2 {
		explicit.ProtocolConfig = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
			Http2ProtocolOptions: http2Options(c.Connections),
		}
	}
	out.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: explicit}
	return out
}

func http2Options(c ir.Connections) *corev3.Http2ProtocolOptions {
	out := &corev3.Http2ProtocolOptions{MaxConcurrentStreams: positive(c.MaxStreams)}
	if c.Ping != nil {
		out.ConnectionKeepalive = &corev3.KeepaliveSettings{
			Interval: durationpb.New(c.Ping.Interval), Timeout: durationpb.New(c.Ping.Timeout),
		}
	}
	return out
}

// keepalive returns the settings in whole seconds, rounded up.
func keepalive(k *ir.Keepalive) *clusterv3.UpstreamConnectionOptions {
	if k == nil {
		return nil
	}
	seconds := func(d time.Duration) *wrapperspb.UInt32Value {
		return positive(int((d + time.Second - 1) / time.Second))
	}
	return &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
		KeepaliveProbes: positive(k.Probes), KeepaliveTime: seconds(k.Time), KeepaliveInterval: seconds(k.Interval),
	}}
}

// said returns a time that may be 0, or nil for Envoy's default.
func said(d *time.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(*d)
}
