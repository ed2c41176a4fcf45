package compile

import (
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// tcpParts are the parts of a listener that services share, and an index of the
// connections that they take. With the index, checking whether another service has
// room takes constant time.
type tcpParts struct {
	blocks  []tcpBlock
	takenBy map[string]tcpBlock // by takenKey, the first of each
	origins map[diag.Ref]bool
}

func newTCPParts() *tcpParts {
	return &tcpParts{takenBy: map[string]tcpBlock{}, origins: map[diag.Ref]bool{}}
}

func (p *tcpParts) add(b tcpBlock) {
	p.blocks = append(p.blocks, b)
	key := takenKey(b.last().Destinations, b.last().ServerNames)
	if _, taken := p.takenBy[key]; !taken {
		p.takenBy[key] = b
	}
}

// takenKey returns the same key for the same connections.
func takenKey(destinations, names []string) string {
	return strings.Join(destinations, ",") + "\n" + strings.Join(names, ",")
}
