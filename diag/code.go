package diag

// Code is the stable identifier of a kind of message, so that it can be looked up, counted
// and waived. It is PA and four digits. The first two digits are the subject.
// docs/messages.md describes all of them. The name and the meaning of a code do not change,
// and a retired code is not reused.
type Code string

// Problems in the text of an object, visible without other objects.
const (
	Unreadable       Code = "PA0001"
	UnknownField     Code = "PA0002"
	MissingField     Code = "PA0003"
	InvalidValue     Code = "PA0004"
	UnsupportedValue Code = "PA0005"
	ForbiddenField   Code = "PA0006"
	DuplicateValue   Code = "PA0007"
	TooLong          Code = "PA0008"
	NoEffect         Code = "PA0009"
	Suspicious       Code = "PA0010"
)

// Problems with what an object refers to.
const (
	UnknownHost      Code = "PA0101"
	HostNotExported  Code = "PA0102"
	UnknownSubset    Code = "PA0103"
	NoInstances      Code = "PA0104"
	UnknownPort      Code = "PA0105"
	UnknownGateway   Code = "PA0106"
	UnknownDelegate  Code = "PA0107"
	UnknownRoute     Code = "PA0108"
	SelectsNothing   Code = "PA0109"
	ImportsNothing   Code = "PA0110"
	HostNotServed    Code = "PA0111"
	WrongProtocol    Code = "PA0112"
	OtherPerCaller   Code = "PA0113"
	FollowedByFew    Code = "PA0114"
	CallersUnlimited Code = "PA0115"
)

// Rules that match no requests, or other requests than they seem to.
const (
	NeverUsed       Code = "PA0201"
	NeverMatches    Code = "PA0202"
	EqualPrecedence Code = "PA0203"
	PolicyUnused    Code = "PA0204"
)

// Conflicts between two objects.
const (
	HostClaimed    Code = "PA0301"
	RuleClaimed    Code = "PA0302"
	GatewayClaimed Code = "PA0303"
	PortClaimed    Code = "PA0304"
	WorkloadShared Code = "PA0305"
	NameShared     Code = "PA0306"
	SecretClaimed  Code = "PA0307"
)

// TLS.
const (
	TLSUnmet      Code = "PA0401"
	TLSUnverified Code = "PA0402"

	CertificateExpiring     Code = "PA0403"
	CertificateExpiringSoon Code = "PA0404"
	CertificateExpired      Code = "PA0405"
)

// Parts that are not followed, or not as written.
const (
	Closed      Code = "PA0501"
	PartLeftOut Code = "PA0502"
	NotFollowed Code = "PA0503"
	AsPilot     Code = "PA0504"
	OverBudget  Code = "PA0505"
)

// Configuration that proxies cannot express, or that they reject.
const (
	LostInV1     Code = "PA0601"
	LostInV3     Code = "PA0602"
	LostInGRPC   Code = "PA0603"
	Contradicts  Code = "PA0604"
	Refused      Code = "PA0605"
	NotPublished Code = "PA0606"
)

// Message describes a Code.
type Message struct {
	Code Code `json:"code"`
	// Name is the code as one word. It is the reason of a condition.
	Name string `json:"name"`
	// About describes the message in one sentence.
	About string `json:"about"`
	// Advice is true if proxies do what the object says. With any other message,
	// something of the object is not honoured.
	Advice bool `json:"advice,omitempty"`
}

// Messages lists all messages in the order of their codes.
var Messages = []Message{
	{Code: Unreadable, Name: "Unreadable", About: "The text is not YAML or JSON, or is not a single object."},
	{Code: UnknownField, Name: "UnknownField", About: "The kind has no such field."},
	{Code: MissingField, Name: "MissingField", About: "A required field is missing."},
	{Code: InvalidValue, Name: "InvalidValue", About: "The field does not accept the value."},
	{Code: UnsupportedValue, Name: "UnsupportedValue", About: "The value or spelling is known but not supported."},
	{Code: ForbiddenField, Name: "ForbiddenField", About: "A field is not allowed here, or not together with another one."},
	{Code: DuplicateValue, Name: "DuplicateValue", About: "A value that must be unique occurs twice."},
	{Code: TooLong, Name: "TooLong", About: "A text or a list is too long."},
	{Code: NoEffect, Name: "NoEffect", About: "The field is accepted but has no effect."},
	{Code: Suspicious, Name: "Suspicious", About: "Proxies do what the field says, but it is probably a mistake or useless.", Advice: true},

	{Code: UnknownHost, Name: "UnknownHost", About: "No ServiceEntry or other object declares the host."},
	{Code: HostNotExported, Name: "HostNotExported", About: "The host is not exported to the namespace that names it."},
	{Code: UnknownSubset, Name: "UnknownSubset", About: "No DestinationRule of the host has the subset."},
	{Code: NoInstances, Name: "NoInstances", About: "No instance of the service has the labels.", Advice: true},
	{Code: UnknownPort, Name: "UnknownPort", About: "The service has no such port."},
	{Code: UnknownGateway, Name: "UnknownGateway", About: "The Gateway does not exist, or the VirtualService is not bound to it."},
	{Code: UnknownDelegate, Name: "UnknownDelegate", About: "The VirtualService that a route delegates to does not exist, or cannot be a delegate."},
	{Code: UnknownRoute, Name: "UnknownRoute", About: "No route of the VirtualService has the name."},
	{Code: SelectsNothing, Name: "SelectsNothing", About: "A selector matches nothing, or nothing selects the workload."},
	{Code: ImportsNothing, Name: "ImportsNothing", About: "No service matches a host of the Sidecar."},
	{Code: HostNotServed, Name: "HostNotServed", About: "The gateways of a VirtualService do not serve one of its hosts, or one of their servers does not."},
	{Code: WrongProtocol, Name: "WrongProtocol", About: "No port of the service has the protocol of the rule, or the port declares no protocol."},
	{Code: OtherPerCaller, Name: "OtherPerCaller", About: "A short name means different services to callers of different namespaces.", Advice: true},
	{Code: FollowedByFew, Name: "FollowedByFew", About: "Fewer callers follow the rule than its exportTo allows."},
	{Code: CallersUnlimited, Name: "CallersUnlimited", About: "A VirtualService applies only to some callers, and does not refuse the others.", Advice: true},

	{Code: NeverUsed, Name: "NeverUsed", About: "An earlier rule takes every request."},
	{Code: NeverMatches, Name: "NeverMatches", About: "No request can meet the condition."},
	{Code: EqualPrecedence, Name: "EqualPrecedence", About: "Two rules of equal precedence may match the same request, and their names decide.", Advice: true},
	{Code: PolicyUnused, Name: "PolicyUnused", About: "No requests go to the policy's version or port.", Advice: true},

	{Code: HostClaimed, Name: "HostClaimed", About: "Two objects declare the same host."},
	{Code: RuleClaimed, Name: "RuleClaimed", About: "Two rules are for the same host, and proxies do not follow all of both."},
	{Code: GatewayClaimed, Name: "GatewayClaimed", About: "Two servers or rules claim the same port or host of a gateway."},
	{Code: PortClaimed, Name: "PortClaimed", About: "Two services claim the same port at the same address."},
	{Code: WorkloadShared, Name: "WorkloadShared", About: "Two objects select the same workload."},
	{Code: NameShared, Name: "NameShared", About: "A name or address of the service leads to another service."},
	{Code: SecretClaimed, Name: "SecretClaimed", About: "Two rules need different certificates in the same place."},

	{Code: TLSUnmet, Name: "TLSUnmet", About: "The requested TLS is impossible, so requests fail."},
	{Code: TLSUnverified, Name: "TLSUnverified", About: "The TLS peer, or its name, is not verified.", Advice: true},
	{Code: CertificateExpiring, Name: "CertificateExpiring", About: "A certificate expires in less than 30 days.", Advice: true},
	{Code: CertificateExpiringSoon, Name: "CertificateExpiringSoon", About: "A certificate expires in less than 7 days.", Advice: true},
	{Code: CertificateExpired, Name: "CertificateExpired", About: "A certificate has expired, so peers that verify it refuse the connection."},

	{Code: Closed, Name: "Closed", About: "Proxies cannot follow a part of the object, and answer its requests with 503."},
	{Code: PartLeftOut, Name: "PartLeftOut", About: "The object, or a part of it, cannot be used and is left out."},
	{Code: NotFollowed, Name: "NotFollowed", About: "Proxies do not follow a part of the object."},
	{Code: AsPilot, Name: "AsPilot", About: "A mesh setting under v1Compatibility makes this differ from Istio."},
	{Code: OverBudget, Name: "OverBudget", About: "The lists of the object multiply beyond the budget of the mesh, so it is withheld."},

	{Code: LostInV1, Name: "LostInV1", About: "The v1 API of Envoy cannot express this."},
	{Code: LostInV3, Name: "LostInV3", About: "The v3 API of Envoy cannot express this."},
	{Code: LostInGRPC, Name: "LostInGRPC", About: "Programs that use gRPC without a proxy cannot do this."},
	{Code: Contradicts, Name: "Contradicts", About: "The compiled configuration is inconsistent, and is left out or closed."},
	{Code: Refused, Name: "Refused", About: "A proxy refuses the configuration of the object."},
	{Code: NotPublished, Name: "NotPublished", About: "The compiled configuration is not in force, and proxies keep their previous one."},
}

var messageOf = func() map[Code]Message {
	of := make(map[Code]Message, len(Messages))
	for _, m := range Messages {
		of[m.Code] = m
	}
	return of
}()

// Message returns the description of the code, and false for an unknown code.
func (c Code) Message() (Message, bool) {
	m, ok := messageOf[c]
	return m, ok
}

// Unhonoured reports whether something of the object is not honoured: the object is
// refused, or proxies do not do all that it says.
func (p Problem) Unhonoured() bool {
	m, known := p.Code.Message()
	return p.Severity == Error || !known || !m.Advice
}

// Unhonoured returns the problems with a part of an object that is not honoured.
func (l List) Unhonoured() List {
	var out List
	for _, p := range l {
		if p.Unhonoured() {
			out = append(out, p)
		}
	}
	return out
}

// CodeOf returns the code for a reason that only needs the text of an object.
func CodeOf(r Reason) Code {
	switch r {
	case Malformed:
		return Unreadable
	case FieldUnknown:
		return UnknownField
	case FieldRequired:
		return MissingField
	case FieldNotSupported:
		return UnsupportedValue
	case FieldForbidden:
		return ForbiddenField
	case FieldDuplicate:
		return DuplicateValue
	case FieldTooLong:
		return TooLong
	case NotHonoured:
		return NoEffect
	}
	return InvalidValue
}
