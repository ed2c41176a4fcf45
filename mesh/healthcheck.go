package mesh

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// takeHealthCheck reads a value of the form that the annotation of a ServiceEntry
// has.
func takeHealthCheck(to **schema.HealthCheck) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		text, err := yaml.Marshal(value)
		if err == nil {
			*to, err = schema.ParseHealthCheck(string(text))
		}
		if err != nil {
			f.report(value, diag.FieldInvalid, path, err.Error())
		}
	}
}

// healthCheck returns the health check that an object declares for its instances,
// or nil.
func healthCheck(o *schema.Object, report func(diag.Problem)) *schema.HealthCheck {
	text, given := o.Meta.Annotations[schema.HealthCheckAnnotation]
	if !given {
		return nil
	}
	out, err := schema.ParseHealthCheck(text)
	if err != nil {
		report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.NotFollowed, Object: o.Key().Ref(),
			Field:   fmt.Sprintf("metadata.annotations[%s]", schema.HealthCheckAnnotation),
			Message: "proxies do not check whether instances are alive: " + err.Error(),
		})
		return nil
	}
	return out
}
