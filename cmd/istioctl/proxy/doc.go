// Package proxy has the verbs about one proxy or all of them: proxy-status, proxy-config
// and route. They take a node ID or a part of one, and route also takes a request to
// explain. They print tables or documents. The configuration comes from the server, or is
// compiled from files. The package changes nothing.
package proxy
