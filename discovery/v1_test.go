package discovery_test

import (
	"testing"
	"testing/synctest"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/v1schema"
)

// What a v1 Envoy would refuse, its schemas refuse.
func TestV1AnswersFitTheSchemas(t *testing.T) {
	schemas := map[string]string{
		"cds": "cds-response", "lds": "lds-response", "sds": "sds-response", "sds nobody": "sds-response",
		"rds 80": "rds-response", "rds proxy": "rds-response", "rds 8123": "rds-response",
	}
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 5)), discovery.Options{})
		for _, node := range []string{nodeA, nodeWeb} {
			all := everything(t, s, node)
			for name, schema := range schemas {
				v1schema.Validate(t, schema, []byte(all[name]))
			}
		}
	})
}
