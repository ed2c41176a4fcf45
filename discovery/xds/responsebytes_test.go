package xds

import (
	"slices"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"
)

// TestResponseBytes holds the spliced bytes of a response against protobuf's.
func TestResponseBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawResponse(t)
		got, want := proto.Message(&discoveryv3.DiscoveryResponse{}), r.message()
		if r.Delta {
			got = &discoveryv3.DeltaDiscoveryResponse{}
		}
		own, common := r.Encode()
		shared := *common
		bytes := slices.Concat(own, shared)
		if err := proto.Unmarshal(bytes, got); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if len(bytes) != proto.Size(want) || len(shared) != r.size() {
			t.Fatalf("%d bytes and %d shared ones, of which %d were expected; protobuf has %d", len(own), len(shared), r.size(), proto.Size(want))
		}
	})
}

func drawResponse(t *rapid.T) *Response {
	text := rapid.StringN(0, 300, 300)
	r := &Response{Version: text.Draw(t, "version"), Nonce: text.Draw(t, "nonce"),
		Content: &Content{TypeURL: text.Draw(t, "type"), Delta: rapid.Bool().Draw(t, "delta")}}
	bytes := rapid.SliceOfN(rapid.Byte(), 0, 300)
	for range rapid.IntRange(0, 4).Draw(t, "resources") {
		c := &Resource{TypeURL: r.TypeURL, Name: text.Draw(t, "name"), Hash: Digest{rapid.Byte().Draw(t, "hash")}, Shell: &Fragment{Binary: bytes.Draw(t, "shell")}}
		for range rapid.IntRange(0, 2).Draw(t, "hosts") {
			c.Hosts = append(c.Hosts, &Fragment{Binary: bytes.Draw(t, "host")})
		}
		r.Resources = append(r.Resources, c)
	}
	if r.Delta {
		r.Removed = rapid.SliceOfN(rapid.StringN(1, 20, 20), 0, 3).Draw(t, "removed")
	}
	return r
}

// message is the response as protobuf has it.
func (r *Response) message() proto.Message {
	world := &discoveryv3.DiscoveryResponse{VersionInfo: r.Version, TypeUrl: r.TypeURL, Nonce: r.Nonce}
	delta := &discoveryv3.DeltaDiscoveryResponse{SystemVersionInfo: r.Version, TypeUrl: r.TypeURL, Nonce: r.Nonce, RemovedResources: r.Removed}
	for _, c := range r.Resources {
		any := &anypb.Any{TypeUrl: c.TypeURL, Value: c.Binary()}
		world.Resources = append(world.Resources, any)
		delta.Resources = append(delta.Resources, &discoveryv3.Resource{Name: c.Name, Version: c.Hash.Version(), Resource: any})
	}
	if r.Delta {
		return delta
	}
	return world
}
