// Package writes changes objects one by one. In come steps, each with an object and the
// request to send; out come a line or document for each on stdout, errors on stderr,
// and a sum. The package decides when to stop, what a dry run shows, and what to say if
// an answer did not come. What a step sends is the caller's business.
package writes
