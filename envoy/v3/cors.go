package v3

import (
	"strconv"
	"strings"
	"time"

	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

func corsPolicy(c *ir.CORS) *corsv3.CorsPolicy {
	out := &corsv3.CorsPolicy{
		AllowMethods:  strings.Join(c.AllowMethods, ","),
		AllowHeaders:  strings.Join(c.AllowHeaders, ","),
		ExposeHeaders: strings.Join(c.ExposeHeaders, ","),
	}
	for _, origin := range c.AllowOrigins {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, originMatcher(origin))
	}
	if c.AnswerPreflights {
		out.ForwardNotMatchingPreflights = wrapperspb.Bool(false)
	}
	if c.MaxAge > 0 {
		out.MaxAge = strconv.FormatInt(int64(c.MaxAge/time.Second), 10)
	}
	if c.AllowCredentials != nil {
		out.AllowCredentials = wrapperspb.Bool(*c.AllowCredentials)
	}
	return out
}

func originMatcher(o ir.OriginMatch) *matcherv3.StringMatcher {
	if o.Prefix != "" {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: o.Prefix}}
	}
	return exactlyOrRegex(o.Exact, o.Regex)
}
