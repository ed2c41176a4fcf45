package mesh

import (
	networking "istio.io/api/networking/v1alpha3"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// takeLocalities reads a value of the form that a DestinationRule has under this
// name.
func takeLocalities(to **networking.LocalityLoadBalancerSetting) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		text, err := yaml.Marshal(value)
		if err == nil {
			*to, err = schema.ParseLocalities(string(text))
		}
		if err != nil {
			f.report(value, diag.FieldInvalid, path, err.Error())
		}
	}
}
