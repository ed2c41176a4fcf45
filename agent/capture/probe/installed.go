package probe

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/agent/capture"
	"github.com/pilot-api/pilot-api/agent/capture/host"
)

// Installed compares what is there with the settings.
func Installed(s *capture.Settings, found *host.Found) (out []Result) {
	const subject = "rules"
	want := s.Fingerprint()
	switch {
	case len(found.By) == 0:
		out = append(out, failed(subject, "none are installed; run pilot-agent capture install"))
	case len(found.By) > 1:
		out = append(out, failed(subject, "there are some by %s; run pilot-agent capture install, which leaves only one", strings.Join(found.By, " and by ")))
	case slices.ContainsFunc(found.Fingerprints, func(mark string) bool { return mark != want }) || len(found.Fingerprints) == 0:
		out = append(out, failed(subject, "those that are installed by %s are of other flags; give check the flags of install, or run install with these", found.By[0]))
	default:
		out = append(out, passed(subject, "installed by %s, with these flags", found.By[0]))
	}
	for _, stranger := range found.Strangers {
		if stranger.Active {
			out = append(out, failed(subject, "%s redirects connections too (%s); remove its rules", stranger.Tool, stranger.What))
		}
	}
	if r := s.Routing(); r.Mark != 0 && len(found.Routing) == 0 {
		out = append(out, failed("routing", "the routing rule for the mark %d is missing; run pilot-agent capture install", r.Mark))
	}
	return out
}
