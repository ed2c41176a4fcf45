package authn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/security/identity"
)

// TokenFile proves the tokens of a file, in the format of the Kubernetes API server: lines
// of a token, a user name, a UID and, optionally, groups in quotes, separated by commas.
// The file is read again when it changes.
type TokenFile struct {
	file *followedFile[map[[sha256.Size]byte]identity.Identity]
}

// shortestToken is the least length of a token in a file, in bytes. Shorter ones can be
// guessed.
const shortestToken = 16

// NewTokenFile reads a file. The error says what is wrong with it, without its tokens.
func NewTokenFile(name string, log *slog.Logger) (*TokenFile, error) {
	file, err := follow("--token-file", name, parseTokenFile, log)
	if err != nil {
		return nil, err
	}
	return &TokenFile{file}, nil
}

// Run follows the file until ctx ends.
func (t *TokenFile) Run(ctx context.Context) error { return t.file.run(ctx) }

// Epoch implements TokenVerifier.
func (t *TokenFile) Epoch() uint64 { return t.file.changes.Load() }

// Verify implements TokenVerifier.
func (t *TokenFile) Verify(_ context.Context, token string) (identity.Identity, time.Time, error) {
	// The hash makes a comparison take the same time for all wrong tokens.
	who, ok := t.file.get()[sha256.Sum256([]byte(token))]
	if !ok {
		return identity.Identity{}, time.Time{}, ErrOtherToken
	}
	return who, time.Now().Add(longestVerified), nil
}

func parseTokenFile(text []byte) (map[[sha256.Size]byte]identity.Identity, error) {
	lines := csv.NewReader(bytes.NewReader(text))
	lines.FieldsPerRecord, lines.Comment, lines.TrimLeadingSpace = -1, '#', true
	known := map[[sha256.Size]byte]identity.Identity{}
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return known, nil
		}
		if err != nil {
			// The text of a parse error has no part of the line.
			return nil, err
		}
		line, _ := lines.FieldPos(0)
		token, who, err := tokenOf(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		sum := sha256.Sum256([]byte(token))
		if _, twice := known[sum]; twice {
			return nil, fmt.Errorf("line %d: its token stands on an earlier line, too", line)
		}
		known[sum] = who
	}
}

func tokenOf(fields []string) (token string, who identity.Identity, err error) {
	switch {
	case len(fields) < 3 || len(fields) > 4:
		return "", who, fmt.Errorf(`must be token,user,uid or token,user,uid,"group1,group2", found %d fields`, len(fields))
	case len(fields[0]) < shortestToken:
		return "", who, fmt.Errorf("a token must have at least %d characters", shortestToken)
	case strings.TrimSpace(fields[1]) == "":
		return "", who, errors.New("the user name is empty")
	}
	who = identity.Identity{Name: fields[1], UID: fields[2], By: identity.ByTokenFile}
	if len(fields) == 4 {
		for group := range strings.SplitSeq(fields[3], ",") {
			if group = strings.TrimSpace(group); group != "" {
				who.Groups = append(who.Groups, group)
			}
		}
	}
	who.Groups = append(who.Groups, identity.Authenticated)
	return fields[0], who, nil
}
