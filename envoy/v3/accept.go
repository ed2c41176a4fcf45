package v3

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// Message is a message with the constraints that Envoy declares.
type Message interface {
	proto.Message
	ValidateAll() error
}

// Check is why Envoy would refuse a resource, or a part of one; nil when it
// takes it. A refused part takes the whole answer with it, so what does not
// pass must not be sent. Beside the declared constraints it asks the rules in
// refusals, also of what is embedded. What Envoy finds only on its own machine,
// such as files that are not there, is not known here.
func Check(m Message) error {
	if err := m.ValidateAll(); err != nil {
		return err
	}
	if rule, ok := resourceRules[m.ProtoReflect().Descriptor().FullName()]; ok {
		if err := rule(m); err != nil {
			return err
		}
	}
	return checkAll(m.ProtoReflect())
}

// checkAll asks the rules of a message and of all that are in it.
func checkAll(m protoreflect.Message) error {
	switch embedded := m.Interface().(type) {
	case *anypb.Any:
		return checkEmbedded(embedded)
	default:
		if rule, ok := partRules[m.Descriptor().FullName()]; ok {
			if err := rule(embedded); err != nil {
				return err
			}
		}
	}
	if !judged.reaches(m.Descriptor()) {
		return nil
	}
	var err error
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		err = checkField(field, value)
		return err == nil
	})
	return err
}

func checkField(field protoreflect.FieldDescriptor, value protoreflect.Value) error {
	var err error
	switch {
	case field.IsMap():
		if !holdsMessages(field.MapValue()) {
			return nil
		}
		value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			err = checkAll(v.Message())
			return err == nil
		})
	case !holdsMessages(field):
	case field.IsList():
		for i := 0; i < value.List().Len() && err == nil; i++ {
			err = checkAll(value.List().Get(i).Message())
		}
	default:
		err = checkAll(value.Message())
	}
	return err
}

func holdsMessages(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && judged.reaches(field.Message())
}

func checkEmbedded(a *anypb.Any) error {
	m, err := a.UnmarshalNew()
	if err != nil {
		return fmt.Errorf("embedded message: %w", err)
	}
	if valid, ok := m.(Message); ok {
		if err := valid.ValidateAll(); err != nil {
			return err
		}
	}
	return checkAll(m.ProtoReflect())
}

// judged spares the way into messages that no rule is about: most of what is
// sent is names and numbers.
var judged = reachability{known: map[protoreflect.FullName]bool{}}

// reachability tells which messages have a part that a rule is about.
type reachability struct {
	mu    sync.RWMutex
	known map[protoreflect.FullName]bool
}

func (r *reachability) reaches(d protoreflect.MessageDescriptor) bool {
	r.mu.RLock()
	yes, ok := r.known[d.FullName()]
	r.mu.RUnlock()
	if ok {
		return yes
	}
	yes = reachesRule(d, map[protoreflect.FullName]bool{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[d.FullName()] = yes
	return yes
}

func reachesRule(d protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	name := d.FullName()
	if _, ok := partRules[name]; ok || name == "google.protobuf.Any" {
		return true
	}
	if seen[name] {
		return false
	}
	seen[name] = true
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		if field.IsMap() {
			field = field.MapValue()
		}
		if m := field.Message(); m != nil && reachesRule(m, seen) {
			return true
		}
	}
	return false
}
