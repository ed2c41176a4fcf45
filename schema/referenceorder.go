package schema

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
)

// Ranks of objects in the order of references: objects refer to others of the same
// or a lower rank.
const (
	rankSecret = iota
	rankService
	rankPolicy
	rankDelegate
	rankRule
)

// ReferenceRank returns the rank of an object, which is lower for objects that
// others refer to. A client that writes objects in the order of their ranks, and
// deletes them in the opposite order, leaves no dangling reference in between. A
// VirtualService without hosts is a delegate of others.
func ReferenceRank(o *Object) int {
	ranks := o.Kind.ReferenceRanks()
	if len(ranks) == 1 {
		return ranks[0]
	}
	if spec, err := o.Spec(); err == nil && len(spec.(*networking.VirtualService).GetHosts()) == 0 {
		return rankDelegate
	}
	return rankRule
}

// ReferenceRanks returns the ranks that objects of the kind may have, the lowest
// first.
func (k *Kind) ReferenceRanks() []int {
	switch k.Kind {
	case "Secret":
		return []int{rankSecret}
	case "ServiceEntry", "WorkloadEntry":
		return []int{rankService}
	case "Gateway", "DestinationRule":
		return []int{rankPolicy}
	case "VirtualService":
		return []int{rankDelegate, rankRule}
	}
	return []int{rankRule}
}

// KindRank is a kind, and one of the ranks of its objects.
type KindRank struct {
	Kind *Kind
	Rank int
}

// ReferenceOrder returns all kinds by the ranks of their objects, each once for
// each rank.
func ReferenceOrder() []KindRank {
	var out []KindRank
	for _, kind := range Kinds() {
		for _, rank := range kind.ReferenceRanks() {
			out = append(out, KindRank{kind, rank})
		}
	}
	slices.SortStableFunc(out, func(a, b KindRank) int { return a.Rank - b.Rank })
	return out
}
