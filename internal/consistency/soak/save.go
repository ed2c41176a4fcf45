package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/pilot-api/pilot-api/internal/consistency"
)

// save writes a history for people: the violations, the true order, the operations of
// clients, and what each watcher received.
func save(path string, h *consistency.History, found []consistency.Violation) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for _, v := range found {
		fmt.Fprintf(out, "VIOLATION %s\n", v)
	}
	for _, c := range h.Changes {
		fmt.Fprintf(out, "CHANGE %s\n", c)
	}
	for i := range h.Operations {
		op := &h.Operations[i]
		fmt.Fprintf(out, "OPERATION %s\n", op)
		for _, item := range op.Items {
			fmt.Fprintf(out, "    %s\n", item)
		}
	}
	for _, w := range h.Watches {
		fmt.Fprintf(out, "WATCH %s until %d\n", w.Name, w.Until)
		for _, f := range w.Frames {
			fmt.Fprintf(out, "    %s\n", f)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}
