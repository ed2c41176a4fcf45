package v3

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestInspectReachesEverything: each field that leads to messages is followed,
// and a mistake is found wherever protobuf's own reflection can put it.
func TestInspectReachesEverything(t *testing.T) {
	const depth = 4
	tooLong := durationpb.New(endOfTime)
	for _, m := range []proto.Message{&clusterv3.Cluster{}, &endpointv3.ClusterLoadAssignment{}, &listenerv3.Listener{}, &routev3.RouteConfiguration{}} {
		looked, missed := 0, 0
		eachMessage(m.ProtoReflect(), depth, func(place protoreflect.Message, path string) {
			switch place := place.Interface().(type) {
			case *durationpb.Duration:
				proto.Merge(place, tooLong)
			case *anypb.Any:
				proto.Merge(place, typed(tooLong))
			default:
				return
			}
			looked++
			if inspect(m) == nil && missed < 10 {
				missed++
				t.Errorf("%s: a mistake is not found in %s", m.ProtoReflect().Descriptor().FullName(), path)
			}
			proto.Reset(place.Interface())
		})
		if looked == 0 {
			t.Errorf("%s: nothing to look for", m.ProtoReflect().Descriptor().FullName())
		}
	}
}

// eachMessage puts an empty message into each field of m in turn, and into theirs.
func eachMessage(m protoreflect.Message, depth int, visit func(place protoreflect.Message, path string)) {
	if depth == 0 {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		inner := emptyIn(m, field)
		if inner == nil {
			continue
		}
		visit(inner, string(field.Name()))
		eachMessage(inner, depth-1, func(place protoreflect.Message, path string) { visit(place, string(field.Name())+"."+path) })
		m.Clear(field)
	}
}

// emptyIn makes an empty message in a field; nil when it holds none.
func emptyIn(m protoreflect.Message, field protoreflect.FieldDescriptor) protoreflect.Message {
	switch {
	case field.IsMap() && field.MapValue().Message() != nil:
		entries := m.Mutable(field).Map()
		key := field.MapKey().Default().MapKey()
		entries.Set(key, entries.NewValue())
		return entries.Get(key).Message()
	case field.IsMap() || field.Message() == nil:
		return nil
	case field.IsList():
		return m.Mutable(field).List().AppendMutable().Message()
	}
	return m.Mutable(field).Message()
}
