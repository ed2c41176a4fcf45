// Package compiled holds configuration after it was compiled: a Generation is all that
// follows from one snapshot and is the same for every proxy, a View is what the proxies
// of one mesh.View.Key receive. Each API version is encoded when the first proxy asks
// for it (V1Answers, V3Answers); Streamed adds the endpoints, which change without the
// view. The package compiles nothing and publishes nothing: an Encoder has what all
// views share, and which generation is current.
//
// Read in this order: encoder.go, generation.go, endpoints.go, view.go, answersv3.go,
// answersv1.go, streamed.go; then proxyless.go, keys.go, difference.go, origins.go and
// registrations.go.
package compiled
