package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// The first session of README.md does what it says there.
func TestReadme(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## A first session\n")
	section, _, _ = strings.Cut(section, "\n## ")
	s := openSession(t)
	steps := readSteps(s.moved.Replace(section))
	if len(steps) < 15 {
		t.Fatalf("found only %d commands in the first session", len(steps))
	}
	for _, step := range steps {
		s.play(t, step)
	}
}

// step is a command of a console block, and what is shown to come of it.
type step struct{ command, output string }

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

func readSteps(text string) []step {
	var steps []step
	for _, block := range consoleBlock.FindAllStringSubmatch(text, -1) {
		lines := strings.ReplaceAll(block[1], "\\\n", "")
		for part := range strings.SplitSeq(strings.TrimPrefix(lines, "$ "), "\n$ ") {
			command, output, _ := strings.Cut(part, "\n")
			command, _, _ = strings.Cut(command, "    # ")
			steps = append(steps, step{command, strings.TrimSpace(output)})
		}
	}
	return steps
}

// shows reports whether an output is like the one that is shown: numbers may
// differ, columns shift, and … stands for anything.
func (s step) shows(output string) bool {
	like := regexp.QuoteMeta(s.output)
	for _, free := range []struct{ text, pattern string }{{"…", ".*"}, {` +`, ` +`}, {`[0-9]+`, `[0-9]+`}} {
		like = regexp.MustCompile(free.text).ReplaceAllLiteralString(like, free.pattern)
	}
	return regexp.MustCompile(`^` + like + `$`).MatchString(strings.TrimSpace(output))
}
