package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
)

// object is a v3 message in JSON.
type object = map[string]any

type list = []any

// read decodes v1 JSON. A field that the Go type does not have is an error.
func read(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w in\n%s", err, text)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something follows the value in\n%s", text)
	}
	return nil
}

// turnAll converts each element. An error names the element.
func turnAll[T any](from []T, turn func(*T) (object, error)) (list, error) {
	out := make(list, len(from))
	for i := range from {
		o, err := turn(&from[i])
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out[i] = o
	}
	return out, nil
}

// typed returns an extension. Its name is only a label; its type decides.
func typed(name, message string, config object) object {
	return object{"name": name, "typed_config": withType(message, config)}
}

func withType(message string, config object) object {
	out := object{"@type": "type.googleapis.com/" + message}
	for key, value := range config {
		out[key] = value
	}
	return out
}

// duration formats milliseconds as in protobuf's JSON: "1.5s".
func duration(ms int64) string {
	return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) + "s"
}

// percent returns n percent of requests.
func percent(n int) object { return object{"numerator": n, "denominator": "HUNDRED"} }

// address converts "tcp://host:port".
func address(v1 string) (object, error) {
	u, err := url.Parse(v1)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || u.Scheme != "tcp" || u.Hostname() == "" || u.Path != "" {
		return nil, fmt.Errorf("address %q is not tcp://host:port", v1)
	}
	return object{"socket_address": object{"address": u.Hostname(), "port_value": port}}, nil
}

// choose looks up a v1 word among the known ones.
func choose(what, word string, known map[string]string) (string, error) {
	v3, ok := known[word]
	if !ok {
		return "", fmt.Errorf("%s %q is not known", what, word)
	}
	return v3, nil
}
