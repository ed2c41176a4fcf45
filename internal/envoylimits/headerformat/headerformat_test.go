package headerformat_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/internal/envoylimits/headerformat"
)

func TestCheck(t *testing.T) {
	for value, complaint := range map[string]string{
		"":                       "",
		"plain":                  "",
		"100%%":                  "",
		"%%REQ(x)%%":             "",
		"%PROTOCOL%":             "",
		"a%REQ(x?:path):3%b%%":   "",
		"%START_TIME%":           "",
		"%START_TIME(%s.%3f)%":   "",
		"%PROTOCOL%%PROTOCOL%%%": "",
		"100%":                   "write %% for the sign itself",
		"%%%":                    "write %% for the sign itself",
		"50% off":                "write %% for the sign itself",
		"%req(x)%":               "write %% for the sign itself",
		"%REQ(x)%REQ(y)%":        "write %% for the sign itself",
		"%REQ(x)b%":              "write %% for the sign itself",
		"%USER%":                 "there is no %USER%",
		"%REQ%":                  "like %REQ(x-name)%",
		"%REQ()%":                "like %REQ(x-name)%",
		"%REQ(a?b?c)%":           "like %REQ(x-name)%",
		"%REQ(a b)%":             "like %REQ(x-name)%",

		"%DYNAMIC_METADATA(com.test.my_filter)%":       "",
		"%DYNAMIC_METADATA(com.test.my_filter:a:b):9%": "",
		"%DYNAMIC_METADATA%":                           "like %DYNAMIC_METADATA(com.example.filter)%",
		"%DYNAMIC_METADATA(a::b)%":                     "like %DYNAMIC_METADATA(com.example.filter)%",

		"%START_TIME(%n)%":         "like %START_TIME(",
		"%START_TIME()%":           "like %START_TIME(",
		"%START_TIME:3%":           "not cut",
		"%PROTOCOL(x)%":            "stands alone",
		"%PROTOCOL:3%":             "stands alone",
		"%ENVIRONMENT(AWS_TOKEN)%": "machine",
		"%FILE_CONTENT(/etc/a)%":   "machine",
	} {
		err := headerformat.Check(value)
		if (err == nil) != (complaint == "") || err != nil && !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q: got %v, want %q", value, err, complaint)
		}
	}
	for _, value := range headerformat.Examples() {
		if err := headerformat.Check(value); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestLiteral: any text has a value that comes to it.
func TestLiteral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(%|%%|a|REQ\(x\)|PROTOCOL)*`).Draw(t, "text")
		value := headerformat.Of(text)
		if err := headerformat.Check(value); err != nil {
			t.Fatal(err)
		}
		if got, ok := headerformat.Literal(value); !ok || got != text {
			t.Fatalf("%q comes to %q, %v", value, got, ok)
		}
	})
	if got, ok := headerformat.Literal("a%PROTOCOL%"); ok {
		t.Errorf("a%%PROTOCOL%% is always %q", got)
	}
}
