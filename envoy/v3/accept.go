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

// Check returns the reason for which Envoy would refuse a resource or a part of one, or nil
// if it accepts it. Envoy refuses a whole answer because of one part, so a part that does
// not pass must not be sent. Check applies the declared constraints and the rules in
// refusals, to embedded messages too. It cannot find faults that only the Envoy's machine
// shows, such as missing files.
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

// checkEmbedded is Check for a message in an Any.
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
