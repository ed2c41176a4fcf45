package explain

// Types are those of the resources that a configuration consists of, as people call
// them and in the order in which they are shown.
var Types = []string{"clusters", "listeners", "routes", "endpoints", "secrets"}
