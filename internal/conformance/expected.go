package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// compare uses the recorded body without Mixer, which does not exist here. If none was
// recorded, it uses the one with Mixer and removes Mixer's parts.
func (c *bodyCase) compare(got []byte) error {
	for _, name := range []string{c.ExpectedNoMixer, "expected-nomixer.json"} {
		want, err := os.ReadFile(filepath.Join(c.dir, name))
		if name != "" && !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(err, compare(want, got))
		}
	}
	want, err := os.ReadFile(filepath.Join(c.dir, cmp.Or(c.Expected, "expected.json")))
	if err == nil {
		want, err = withoutMixer(want)
	}
	return cmp.Or(err, compare(want, got))
}

// mixers lists the names of Mixer's parts, by the list that contains them.
var mixers = map[string][]string{
	"clusters": {"mixer_check_server", "mixer_report_server"},
	"filters":  {"mixer"},
}

func withoutMixer(body []byte) ([]byte, error) {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, fmt.Errorf("the expected body: %w", err)
	}
	return json.Marshal(stripped(v))
}

// stripped returns a part of a body without Mixer's clusters, filters and route options.
func stripped(v any) any {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			v[i] = stripped(item)
		}
	case map[string]any:
		delete(v, "opaque_config")
		for name, value := range v {
			if list, ok := value.([]any); ok {
				value = slices.DeleteFunc(list, func(item any) bool { return slices.Contains(mixers[name], label(item)) })
			}
			v[name] = stripped(value)
		}
	}
	return v
}
