package answer

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
)

// inGzip is the suffix of the tags of answers in gzip.
const inGzip = "-gzip"

// Unchanged answers 304 if the client already has this answer, and otherwise sets
// its ETag. Use it for answers to GET in formats that do not show ages.
func Unchanged(w http.ResponseWriter, r *http.Request, tag string) bool {
	if !wire.IsRead(r) {
		return false
	}
	w.Header().Add("Vary", "Accept")
	w.Header().Set("ETag", `"`+tag+`"`)
	if !namesTag(r.Header.Values("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// TagOf returns the tag of an answer: its resourceVersion, and a hash of everything that
// the resourceVersion does not cover. The resourceVersion, the set of objects and their
// statuses (nil for none) determine the content. Another store may have had the same
// resourceVersion for other objects, but those have other uids.
func TagOf(f wire.Format, revision string, objs []*schema.Object, statuses [][]byte) string {
	var hash xxhash.Digest
	hash.Reset()
	if len(objs) > 0 {
		_, _ = hash.WriteString(string(objs[0].Meta.UID) + string(objs[len(objs)-1].Meta.UID))
	}
	for _, status := range statuses {
		_, _ = hash.Write(status)
	}
	tag := revision + "-" + strconv.FormatUint(hash.Sum64(), 36)
	if f == wire.YAML {
		tag += "-yaml"
	}
	return tag
}

// namesTag reports whether If-None-Match names a tag, in gzip or not. A weak tag
// matches the strong one, as RFC 9110 requires for GET.
func namesTag(headers []string, tag string) bool {
	for _, header := range headers {
		for one := range strings.SplitSeq(header, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || one == `"`+tag+`"` || one == `"`+tag+inGzip+`"` {
				return true
			}
		}
	}
	return false
}
