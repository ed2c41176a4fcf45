package v1

import (
	"strconv"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/ir"
)

// CORS policy; the maximal age is seconds in text. Credentials that are not
// allowed are left out, as by Pilot.
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
		AllowOrigin:      c.AllowOrigin,
	}
	if c.MaxAge > 0 {
		out.MaxAge = strconv.FormatInt(int64(c.MaxAge/time.Second), 10)
	}
	return out
}
