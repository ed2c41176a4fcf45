package v3

import (
	"fmt"

	"google.golang.org/protobuf/proto"
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
	return inspect(m)
}

// checkEmbedded asks what Check does of a message in an Any.
func checkEmbedded(a *anypb.Any) error {
	if fixed[a] {
		return nil
	}
	m, err := a.UnmarshalNew()
	if err != nil {
		return fmt.Errorf("embedded message: %w", err)
	}
	if valid, ok := m.(Message); ok {
		if err := valid.ValidateAll(); err != nil {
			return err
		}
	}
	return inspect(m)
}
