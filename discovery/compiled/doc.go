// Package compiled holds compiled configuration. A Generation has those results of a
// snapshot that are the same for every proxy. A View has the configuration for the proxies
// of one mesh.Traits.Key. Each API version is encoded when the first proxy asks for it
// (V1Answers, V3Answers). Streamed adds the endpoints, which change without the view. An
// Encoder has what all views share, and the current generation. The package compiles
// nothing and publishes nothing.
//
// Read in this order: encoder.go, generation.go, endpoints.go, view.go, answersv3.go,
// answersv1.go, streamed.go; then proxyless.go, keys.go, difference.go, origins.go and
// registrations.go.
package compiled
