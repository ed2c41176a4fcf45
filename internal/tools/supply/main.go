// Command supply says what is in a built program, from what the Go linker wrote into it.
//
//	supply sbom PROGRAM      print a bill of materials in CycloneDX
//	supply licences PROGRAM  list the licence of each module, and fail for one that is not known
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: supply sbom|licences PROGRAM")
	}
	info, err := buildinfo.ReadFile(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "sbom":
		return writeSBOM(os.Stdout, args[1], info)
	case "licences":
		return listLicences(os.Stdout, info)
	}
	return fmt.Errorf("there is no %q", args[0])
}

// writeSBOM writes the modules of a program, and the Go that built it.
func writeSBOM(out io.Writer, program string, info *debug.BuildInfo) error {
	sum, err := sumOf(program)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: info.Path, Type: cdx.ComponentTypeApplication, Name: filepath.Base(program), Version: info.Main.Version,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
	}}
	components := []cdx.Component{{
		BOMRef: "std", Type: cdx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	}}
	needs := []string{"std"}
	for _, m := range linked(info) {
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		components = append(components, cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl})
		needs = append(needs, purl)
	}
	bom.Components, bom.Dependencies = &components, &[]cdx.Dependency{{Ref: info.Path, Dependencies: &needs}}
	encoder := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	return encoder.Encode(bom)
}

// linked returns the modules of a program as they were built.
func linked(info *debug.BuildInfo) (out []*debug.Module) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, m)
	}
	return out
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// words identify licences by a text that each of them has and no other.
var words = []struct{ name, text string }{
	{"Apache-2.0", "apache license"},
	{"MPL-2.0", "mozilla public license"},
	{"MIT", "permission is hereby granted, free of charge"},
	{"BSD", "redistribution and use in source and binary forms"},
	{"ISC", "permission to use, copy, modify, and/or distribute"},
	{"ISC", "permission to use, copy, modify, and distribute this software"},
}

// listLicences fails for a module without a licence, or with one that is not among words.
func listLicences(out io.Writer, info *debug.BuildInfo) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	var unknown []string
	for _, m := range linked(info) {
		name, err := licenceOf(m)
		if err != nil {
			unknown = append(unknown, fmt.Sprintf("%s: %v", m.Path, err))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", m.Path, m.Version, name)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(unknown) > 0 {
		return fmt.Errorf("licences that nobody has looked at:\n%s", strings.Join(unknown, "\n"))
	}
	return nil
}

func licenceOf(m *debug.Module) (string, error) {
	dir, err := exec.Command("go", "mod", "download", "-json", m.Path+"@"+m.Version).Output()
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(dir), `"Dir": "`)
	folder, _, _ := strings.Cut(rest, `"`)
	for _, pattern := range []string{"LICENSE*", "LICENCE*", "License*", "license*", "COPYING*"} {
		files, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			plain := strings.Join(strings.Fields(strings.ToLower(string(text))), " ")
			for _, w := range words {
				if strings.Contains(plain, w.text) {
					return w.name, nil
				}
			}
		}
	}
	return "?", errors.New("its licence is not known")
}
