// Package writes changes objects one by one. Callers give it steps, each with an object and
// the request to send. It prints a line or document for each on stdout, errors on stderr,
// and a total. The package decides when to stop, what a dry run shows, and what to report
// if no answer came. The caller decides what a step sends.
package writes
