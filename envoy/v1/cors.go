package v1

import (
	"strconv"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// CORS is a CORS policy. The maximum age is a number of seconds as text. As in Pilot,
// credentials are omitted if they are not allowed.
type CORS struct {
	Enabled          bool     `json:"enabled"`
	AllowCredentials bool     `json:"allow_credentials,omitempty"`
	AllowMethods     string   `json:"allow_methods,omitempty"`
	AllowHeaders     string   `json:"allow_headers,omitempty"`
	ExposeHeaders    string   `json:"expose_headers,omitempty"`
	MaxAge           string   `json:"max_age,omitempty"`
	AllowOrigin      []string `json:"allow_origin,omitempty"`
}

func cors(c *ir.CORS) *CORS {
	if c == nil {
		return nil
	}
	out := &CORS{
		Enabled:          true,
		AllowCredentials: c.AllowCredentials != nil && *c.AllowCredentials,
		AllowMethods:     strings.Join(c.AllowMethods, ","),
		AllowHeaders:     strings.Join(c.AllowHeaders, ","),
		ExposeHeaders:    strings.Join(c.ExposeHeaders, ","),
		AllowOrigin:      wholeOrigins(c),
	}
	if c.MaxAge > 0 {
		out.MaxAge = strconv.FormatInt(int64(c.MaxAge/time.Second), 10)
	}
	return out
}

// wholeOrigins returns the origins that are compared as a whole, as v1 does.
func wholeOrigins(c *ir.CORS) []string {
	var out []string
	for _, o := range c.AllowOrigins {
		if o.Exact != "" {
			out = append(out, o.Exact)
		}
	}
	return out
}

// lostCORS reports the parts of a policy that v1 lacks. Without them a browser allows
// less, never more.
func lostCORS(r *ir.Route) diag.List {
	if r.CORS == nil {
		return nil
	}
	var out diag.List
	for _, o := range r.CORS.AllowOrigins {
		if o.Exact == "" {
			out = append(out, diag.Warn(diag.NotHonoured, r.Origins, "Envoy v1 compares whole origins: it allows none that begins with, or matches, %q", o.Prefix+o.Regex)...)
		}
	}
	if r.CORS.AnswerPreflights {
		out = append(out, diag.Warn(diag.NotHonoured, r.Origins, "Envoy v1 forwards preflights of other origins")...)
	}
	return out
}
