package diag

// Code is the stable identifier of a kind of message, so that it can be looked up,
// counted and waived. It is PA and four digits, of which the first two are a
// subject. docs/messages.md describes all of them. The name and the meaning of a
// code do not change, and a retired code is not reused.
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
	{Code: Unreadable, Name: "Unreadable", About: "The text is no YAML or JSON, or not one object."},
	{Code: UnknownField, Name: "UnknownField", About: "The kind has no such field."},
	{Code: MissingField, Name: "MissingField", About: "A field that must be there is not."},
	{Code: InvalidValue, Name: "InvalidValue", About: "A value is not one that the field takes."},
	{Code: UnsupportedValue, Name: "UnsupportedValue", About: "A value or spelling is known, and not supported."},
	{Code: ForbiddenField, Name: "ForbiddenField", About: "A field cannot be there, or not beside another one."},
	{Code: DuplicateValue, Name: "DuplicateValue", About: "Something is given twice that may be there once."},
	{Code: TooLong, Name: "TooLong", About: "A text or a list is too long."},
	{Code: NoEffect, Name: "NoEffect", About: "A field is taken and changes nothing."},
	{Code: Suspicious, Name: "Suspicious", About: "Proxies do what a field says, and that is most likely a mistake or of no use.", Advice: true},

	{Code: UnknownHost, Name: "UnknownHost", About: "No ServiceEntry, or other object, declares the host."},
	{Code: HostNotExported, Name: "HostNotExported", About: "The host is not exported to the namespace that names it."},
	{Code: UnknownSubset, Name: "UnknownSubset", About: "No DestinationRule of the host has the subset."},
	{Code: NoInstances, Name: "NoInstances", About: "No instance of the service has the labels.", Advice: true},
	{Code: UnknownPort, Name: "UnknownPort", About: "The service has no such port."},
	{Code: UnknownGateway, Name: "UnknownGateway", About: "There is no such Gateway, or it is not among those of the VirtualService."},
	{Code: UnknownDelegate, Name: "UnknownDelegate", About: "The VirtualService that a route delegates to is not there, or cannot be delegated to."},
	{Code: UnknownRoute, Name: "UnknownRoute", About: "No route of the VirtualService has the name."},
	{Code: SelectsNothing, Name: "SelectsNothing", About: "A selector fits nothing, or nothing selects the workload."},
	{Code: ImportsNothing, Name: "ImportsNothing", About: "A host of a Sidecar is nobody's, so it imports nothing."},
	{Code: HostNotServed, Name: "HostNotServed", About: "A host of a VirtualService is not served by its gateways, or not by each server that should."},
	{Code: WrongProtocol, Name: "WrongProtocol", About: "A rule is for a protocol that no port of the service has, or that a port without a protocol has not."},
	{Code: OtherPerCaller, Name: "OtherPerCaller", About: "A short name is another service to callers of other namespaces.", Advice: true},
	{Code: FollowedByFew, Name: "FollowedByFew", About: "Fewer callers follow a rule than it is exported to."},
	{Code: CallersUnlimited, Name: "CallersUnlimited", About: "A VirtualService is for some callers, and does not refuse the others.", Advice: true},

	{Code: NeverUsed, Name: "NeverUsed", About: "A rule comes after one that takes every request."},
	{Code: NeverMatches, Name: "NeverMatches", About: "No request meets a condition."},
	{Code: EqualPrecedence, Name: "EqualPrecedence", About: "Two rules of one precedence may match one request, and their names decide.", Advice: true},
	{Code: PolicyUnused, Name: "PolicyUnused", About: "A policy is for a version or port that no requests are sent to.", Advice: true},

	{Code: HostClaimed, Name: "HostClaimed", About: "Two objects declare one host."},
	{Code: RuleClaimed, Name: "RuleClaimed", About: "Two rules are for one host, and not all of both is followed."},
	{Code: GatewayClaimed, Name: "GatewayClaimed", About: "Two servers or rules want one port or host of a gateway."},
	{Code: PortClaimed, Name: "PortClaimed", About: "Two services want one port at one address."},
	{Code: WorkloadShared, Name: "WorkloadShared", About: "Two objects select one workload."},
	{Code: NameShared, Name: "NameShared", About: "A name or address by which callers know the service goes to another one."},
	{Code: SecretClaimed, Name: "SecretClaimed", About: "Two rules want one place for their certificates."},

	{Code: TLSUnmet, Name: "TLSUnmet", About: "TLS is asked for that cannot be done, so requests fail."},
	{Code: TLSUnverified, Name: "TLSUnverified", About: "Who is at the other end of TLS is not verified, or not by name.", Advice: true},
	{Code: CertificateExpiring, Name: "CertificateExpiring", About: "A certificate expires in less than 30 days.", Advice: true},
	{Code: CertificateExpiringSoon, Name: "CertificateExpiringSoon", About: "A certificate expires in less than 7 days.", Advice: true},
	{Code: CertificateExpired, Name: "CertificateExpired", About: "A certificate has expired, so those who verify it refuse the connection."},

	{Code: Closed, Name: "Closed", About: "A part of the object cannot be followed, and what it would take is answered with 503."},
	{Code: PartLeftOut, Name: "PartLeftOut", About: "A part of the object, or all of it, cannot be used and is left out."},
	{Code: NotFollowed, Name: "NotFollowed", About: "A part of the object is not followed."},
	{Code: AsPilot, Name: "AsPilot", About: "A setting of the mesh, one of v1Compatibility, has this done otherwise than Istio does it today."},
	{Code: OverBudget, Name: "OverBudget", About: "The lists of the object multiply to more than the mesh has room for, and it is withheld."},

	{Code: LostInV1, Name: "LostInV1", About: "An Envoy of the v1 API cannot be told this."},
	{Code: LostInV3, Name: "LostInV3", About: "An Envoy of the v3 API cannot be told this."},
	{Code: LostInGRPC, Name: "LostInGRPC", About: "A program that speaks gRPC without a proxy cannot be told this."},
	{Code: Contradicts, Name: "Contradicts", About: "What follows from the objects contradicts itself, and is left out or closed."},
	{Code: Refused, Name: "Refused", About: "A proxy refuses what follows from the object."},
	{Code: NotPublished, Name: "NotPublished", About: "What follows from the objects is not in force, and proxies keep what they had."},
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

// Unhonoured returns the problems by which something of an object is not honoured.
func (l List) Unhonoured() List {
	var out List
	for _, p := range l {
		if p.Unhonoured() {
			out = append(out, p)
		}
	}
	return out
}

// CodeOf returns the code for a reason that the text of an object alone gives.
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
