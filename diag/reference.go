package diag

// References are what an object names, and what names it.
type References struct {
	RefersTo   []Reference `json:"refersTo"`
	ReferredBy []Reference `json:"referredBy"`
	// Omitted is how many there are beside. One that an object says several times may
	// be counted so often.
	Omitted int `json:"omitted,omitempty"`
}

// Reference is one object that another one names in a field.
type Reference struct {
	From  Ref    `json:"from"`
	Field string `json:"field"`
	// Names is what is named there, such as "host reviews.default.svc.cluster.local".
	Names string `json:"names"`
	// To is the object; the zero Ref where a host or a version is nobody's.
	To Ref `json:"to,omitzero"`
	// Missing: what is named is not there, or not for who names it.
	Missing bool `json:"missing,omitempty"`
}
