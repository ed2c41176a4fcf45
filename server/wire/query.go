package wire

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

// PathParam returns a part of the path, unescaped. The router leaves it escaped if the
// client escaped more than necessary. An invalid escape stays unchanged.
func PathParam(r *http.Request, name string) string {
	part := chi.URLParam(r, name)
	if plain, err := url.PathUnescape(part); err == nil && r.URL.RawPath != "" {
		return plain
	}
	return part
}

// CheckParams refuses unknown and repeated parameters: a typo in a selector must
// not select everything.
func CheckParams(q url.Values, allowed []string) error {
	for name, values := range q {
		if !slices.Contains(allowed, name) {
			return BadRequest("unknown query parameter %q, allowed here are: %s", name, strings.Join(allowed, ", "))
		}
		if len(values) > 1 {
			return BadRequest("query parameter %q is given %d times, allowed is once", name, len(values))
		}
	}
	return nil
}

// BadParam is the Status 400 of an invalid query parameter. allowed describes the valid
// values.
func BadParam(q url.Values, name, allowed string) error {
	return BadRequest("query parameter %s: must be %s, found %q", name, allowed, q.Get(name))
}

// Given returns a parameter, or nil if it is missing.
func Given(q url.Values, name string) *string {
	if !q.Has(name) {
		return nil
	}
	return &q[name][0]
}

// CheckFilled refuses empty parameters whose absence would widen the effect of the request.
// An unset variable must not do this.
func CheckFilled(q url.Values, names ...string) error {
	for _, name := range names {
		if q.Has(name) && q.Get(name) == "" {
			return BadRequest("query parameter %s: must not be empty", name)
		}
	}
	return nil
}

// BoolParam reads true or false; false if unset.
func BoolParam(q url.Values, name string) (bool, error) {
	switch q.Get(name) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, BadParam(q, name, "true or false")
}

// DurationParam reads a positive duration such as 30s; if it is unset or 0, the result is unset.
func DurationParam(q url.Values, name string, unset time.Duration) (time.Duration, error) {
	text := q.Get(name)
	if text == "" || text == "0" || text == "0s" {
		return unset, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, BadParam(q, name, "a duration like 30s")
	}
	return d, nil
}

// CountParam reads a number that is not negative; 0 if unset.
func CountParam(q url.Values, name string) (int64, error) {
	if q.Get(name) == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0, BadParam(q, name, "a whole number, 0 or more")
	}
	return n, nil
}

// ChoiceParam reads one of several words; "" if unset.
func ChoiceParam(q url.Values, name string, choices ...string) (string, error) {
	value := q.Get(name)
	if value == "" || slices.Contains(choices, value) {
		return value, nil
	}
	return "", BadParam(q, name, "one of "+strings.Join(choices, ", "))
}
