// Package printer prints objects in the format of --output: as tables, YAML, JSON, names,
// by a JSONPath, or in custom columns. Callers give it objects, with the progress of
// proxies if known. It writes text to the writer that the caller supplies. The text has no
// character that could control a terminal, except for a JSONPath that a program reads. The
// package asks no server and reads no files.
package printer
