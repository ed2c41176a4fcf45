package diag

// References lists the objects that an object names, and the objects that name it.
type References struct {
	RefersTo   []Reference `json:"refersTo"`
	ReferredBy []Reference `json:"referredBy"`
	// Omitted is how many further references there are. A reference that an object
	// repeats may be counted once for each repetition.
	Omitted int `json:"omitted,omitempty"`
}

// Reference is one field of an object that names another object.
type Reference struct {
	From  Ref    `json:"from"`
	Field string `json:"field"`
	// Names describes the target as the field names it, such as "host
	// reviews.default.svc.cluster.local".
	Names string `json:"names"`
	// To is the object named. It is the zero Ref if no object has the host or
	// version.
	To Ref `json:"to,omitzero"`
	// Missing is true if the target does not exist, or is not visible to the object
	// that names it.
	Missing bool `json:"missing,omitempty"`
}
