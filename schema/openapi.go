package schema

import (
	"fmt"
	"maps"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// OpenAPI returns the kind's spec as an OpenAPI 3.0 schema, derived from the JSON
// Schema that validates it. It is for reading, as by kubectl explain: the
// descriptions say what types cannot express. The caller owns it.
func (k *Kind) OpenAPI() map[string]any {
	return openAPI(compiled()[k.Singular])
}

// statusOpenAPI describes Status, which no JSON Schema checks.
var statusOpenAPI = map[string]any{
	"type": "object", "description": "The state of the object at the proxies. The server computes it, and ignores a status that a client sends.",
	"properties": map[string]any{
		"programmed": map[string]any{
			"type": "object", "description": "The connected proxies that have the object in their configuration.",
			"properties": map[string]any{
				"proxies": map[string]any{"type": "integer", "description": "The number of these proxies."},
				"running": map[string]any{"type": "integer", "description": "The number of them that run this version of the object, or a later one."},
				"fetched": map[string]any{"type": "integer", "description": "The number of them that fetched it over v1. Whether they run it is not known."},
			},
		},
		"conditions": map[string]any{
			"type": "array", "description": "The conditions Accepted, ResolvedRefs and Programmed, in the form of Kubernetes.",
			"items": map[string]any{"type": "object", "properties": map[string]any{
				"type": map[string]any{"type": "string"}, "status": map[string]any{"type": "string"}, "reason": map[string]any{"type": "string"},
				"message": map[string]any{"type": "string"}, "lastTransitionTime": map[string]any{"type": "string"},
				"observedGeneration": map[string]any{"type": "integer"},
			}},
		},
	},
}

// ObjectOpenAPI returns the schema of a whole object of the kind in some of its
// Versions, as OpenAPI does of its spec.
func (k *Kind) ObjectOpenAPI(versions ...string) map[string]any {
	apiVersions, gvks := make([]string, len(versions)), make([]any, len(versions))
	for i, version := range versions {
		apiVersions[i] = k.In(version)
		gvks[i] = map[string]any{"group": k.Group, "version": version, "kind": k.Kind}
	}
	properties := map[string]any{
		"apiVersion": map[string]any{"type": "string", "description": "Must be " + strings.Join(apiVersions, " or ") + "."},
		"kind":       map[string]any{"type": "string", "description": "Must be " + k.Kind + "."},
		"metadata":   MetadataOpenAPI(),
	}
	if k.Flat {
		members, _ := k.OpenAPI()["properties"].(map[string]any)
		maps.Copy(properties, members)
	} else {
		properties["spec"], properties["status"] = k.OpenAPI(), statusOpenAPI
	}
	return map[string]any{
		"type": "object", "description": k.Doc, "properties": properties,
		"x-kubernetes-group-version-kind": gvks,
	}
}

// MetadataOpenAPI returns the schema of the metadata of every kind.
func MetadataOpenAPI() map[string]any {
	return openAPI(compiled()["object"].Properties["metadata"])
}

func openAPI(s *jsonschema.Schema) map[string]any {
	out := map[string]any{"type": s.Types[0]}
	if text := openAPIText(s); text != "" {
		out["description"] = text
	}
	if names := enumNames(s); len(names) > 0 {
		out["enum"] = names
	}
	if s.Items2020 != nil {
		out["items"] = openAPI(s.Items2020)
	}
	listTypeOf(s).describe(out)
	if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		out["additionalProperties"] = openAPI(rest)
	}
	if len(s.Properties) > 0 {
		properties := map[string]any{}
		for name, property := range s.Properties {
			properties[name] = openAPI(property)
		}
		out["properties"] = properties
	}
	if len(s.Required) > 0 {
		out["required"] = s.Required
	}
	return out
}

// openAPIText returns the description with the default, which in our schemas is
// often prose instead of a value.
func openAPIText(s *jsonschema.Schema) string {
	text := s.Description
	if s.Default != nil {
		text += fmt.Sprintf(" Default: %v.", s.Default)
	}
	return strings.TrimSpace(text)
}
