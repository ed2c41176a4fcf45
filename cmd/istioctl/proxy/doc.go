// Package proxy has the verbs about one proxy or all of them: proxy-status, proxy-
// config and route. In come a node ID or a part of one, and a request to explain; out
// come tables or documents. The configuration comes from the server, or is compiled
// from files. The package changes nothing.
package proxy
