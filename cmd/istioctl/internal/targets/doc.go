// Package targets finds out which objects the arguments and selectors of a verb mean.
// Callers give it KIND, KIND NAME and KIND/NAME with -l and --field-selector. It returns
// kinds, keys, and a selection for the server. Only the completion of names asks the
// server.
package targets
