package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/internal/consistency/programmed"
)

// save writes a history for people: the violations, the true order, the operations of
// clients, and what each watcher received.
func save(path string, h *consistency.History, found []consistency.Violation) error {
	return saved(path, found, func(out *bufio.Writer) { writeHistory(out, h) })
}

// saved writes a file that begins with the violations. An error of out is kept until the end.
func saved(path string, found []consistency.Violation, rest func(out *bufio.Writer)) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for _, v := range found {
		fmt.Fprintf(out, "VIOLATION %s\n", v)
	}
	rest(out)
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}

func writeHistory(out *bufio.Writer, h *consistency.History) {
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
}

// saveProgrammed writes a history for people: the violations, the writes, and what each proxy
// did.
func saveProgrammed(path string, h *programmed.History, found []consistency.Violation) error {
	return saved(path, found, func(out *bufio.Writer) { writeProgrammed(out, h) })
}

func writeProgrammed(out *bufio.Writer, h *programmed.History) {
	for _, w := range h.Writes {
		fmt.Fprintf(out, "WRITE %+v\n", w)
	}
	for _, d := range h.Deaths {
		fmt.Fprintf(out, "DEATH %+v\n", d)
	}
	for _, p := range h.Proxies {
		fmt.Fprintf(out, "PROXY %s\n", p.Name)
		for _, s := range p.Streams {
			fmt.Fprintf(out, "    %+v\n", s)
		}
		for _, r := range p.Refused {
			fmt.Fprintf(out, "    REFUSED %+v\n", r)
		}
		for key, had := range p.Had {
			fmt.Fprintf(out, "    HAD %s %+v\n", key, had)
		}
	}
}
