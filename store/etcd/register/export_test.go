package register

import "time"

// Hurry shortens the leases of a member of the register.
func (r *Register) Hurry(lease, memory time.Duration) { r.lease, r.memory = lease, memory }
