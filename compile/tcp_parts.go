package compile

import (
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// tcpParts are the parts of a listener that services share, and what is taken by
// them. A further service finds out in constant time whether there is room for it.
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

// takenKey is the same for the same connections.
func takenKey(destinations, names []string) string {
	return strings.Join(destinations, ",") + "\n" + strings.Join(names, ",")
}
