package explain

// Types are the types of resources in a configuration, by the names that people use
// and in the order in which they are shown.
var Types = []string{"clusters", "listeners", "routes", "endpoints", "secrets"}
