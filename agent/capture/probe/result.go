package probe

import "fmt"

// State is how a trial ended.
type State string

// The states.
const (
	Passed  State = "ok"
	Failed  State = "FAIL"
	Skipped State = "skip" // it could not be tried
)

// Result is a trial in words.
type Result struct {
	State State
	// Subject says what was tried: "rules", "outbound IPv4".
	Subject string
	// Text says what was found and, if the trial failed, what to do.
	Text string
}

func (r Result) String() string { return fmt.Sprintf("%-4s  %s: %s", r.State, r.Subject, r.Text) }

func passed(subject, format string, values ...any) Result {
	return Result{Passed, subject, fmt.Sprintf(format, values...)}
}

func failed(subject, format string, values ...any) Result {
	return Result{Failed, subject, fmt.Sprintf(format, values...)}
}

func skipped(subject, format string, values ...any) Result {
	return Result{Skipped, subject, fmt.Sprintf(format, values...)}
}
