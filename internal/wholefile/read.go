package wholefile

import (
	"fmt"
	"io"
	"os"
)

// ReadAtMost returns the content of a file. A file of more than most bytes is an error that
// names it, and no more than that is read.
func ReadAtMost(name string, most int) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > most:
		return nil, fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return text, nil
}
