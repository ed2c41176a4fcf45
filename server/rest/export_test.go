package rest

// For tests through the whole server.
const PollingNode = pollingNode

var (
	Published, WebService = published, webService
	EnvoyPoll, EnvoyNode  = envoyPoll, envoyNode
)
