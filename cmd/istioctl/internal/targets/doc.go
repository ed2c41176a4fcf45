// Package targets finds out which objects the arguments and selectors of a verb mean.
// In come KIND, KIND NAME and KIND/NAME with -l and --field-selector; out come kinds,
// keys, and a selection for the server. The completion of names asks the server;
// nothing else does.
package targets
