package schema

import (
	"encoding/json"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/pilot-api/pilot-api/diag"
)

func (d *candidate) checkMeta() {
	tree, ok := d.top["metadata"].(map[string]any)
	if !ok {
		return
	}
	if tree["name"] == nil && tree["generateName"] == nil {
		d.required("metadata.name", "must be given, or else generateName")
	}
	text, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(text, &d.meta)
	}
	if err != nil && d.list.Err() == nil {
		d.invalid("metadata", err.Error())
	}
	d.checkMeaningOfMeta()
}

// checkMeaningOfMeta checks what no schema can express.
func (d *candidate) checkMeaningOfMeta() {
	if err := apivalidation.ValidateAnnotationsSize(d.meta.Annotations); err != nil {
		d.add(diag.Error, diag.FieldTooLong, "metadata.annotations", "", err.Error())
	}
	d.checkHealthCheck()
	d.checkOnDemand()
	d.checkNoKey()
	d.checkFinalizers()
	if len(d.meta.OwnerReferences) > 0 {
		d.forbidden("metadata.ownerReferences", "is not supported: the server deletes no object after its owner; "+
			"give the objects that go together a label and delete them by it (kubectl delete -l), or put a finalizer on the owner")
	}
}

func (d *candidate) checkFinalizers() {
	for i, name := range d.meta.Finalizers {
		at := fmt.Sprintf("metadata.finalizers[%d]", i)
		if errs := apivalidation.ValidateFinalizerName(name, nil); len(errs) > 0 {
			d.invalidValue(at, name, "must be a name such as example.com/clean-up: "+errs[0].Detail)
		}
	}
}
