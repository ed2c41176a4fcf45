package schema

import (
	"strings"
)

// Suggest answers an unknown name with the known name that was probably meant, or
// else with all known names after the words in all.
func Suggest(name string, known []string, all string) string {
	if best := Nearest(name, known); best != "" {
		return "did you mean " + best + "?"
	}
	return all + " " + strings.Join(known, ", ")
}

// Nearest returns the known name that was probably meant, or "" if none is near
// enough.
func Nearest(name string, known []string) string {
	const tooLong = 64 // Known names are shorter; computing the distance would waste time.
	best, least := "", 3
	if len(name) > tooLong {
		return ""
	}
	for _, candidate := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least && d < len(candidate) {
			best, least = candidate, d
		}
	}
	return best
}

// KindNames returns the names of all kinds, in the order of Kinds.
func KindNames() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, kind.Kind)
	}
	return names
}

// distance returns the number of letters to add, remove or replace to turn one text
// into the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, cost)
		}
	}
	return row[len(b)]
}
