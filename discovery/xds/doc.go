// Package xds encodes configuration as the resources that Envoys and clients of gRPC
// receive. Callers give it parts of an ir.Config. It returns immutable resources, sets of
// them, and encoded answers. It checks and encodes each part once, however many views share
// it. The encoded form lives as long as the part. The package knows no proxies and no
// snapshots.
//
// Read in this order: types.go, fragment.go (an encoded message), resource.go, set.go and
// setdiff.go; v3parts.go, proxylessparts.go and v1parts.go, which make them; answer.go (to
// a poll), content.go and responsebytes.go (to a stream); knowing.go and secrets.go for two
// special cases.
package xds
