package objects

import (
	"slices"

	"github.com/pilot-api/pilot-api/server/wire"
)

// Query parameters by verb.
var (
	getParams    = wire.Params("resourceVersion", "includeObject", "freshStatus")
	writeParams  = wire.Params("dryRun", "fieldManager", "fieldValidation")
	patchParams  = append(slices.Clone(writeParams), "force")
	deleteParams = wire.Params("dryRun", "gracePeriodSeconds", "propagationPolicy", "orphanDependents")

	deleteCollectionParams = append(slices.Clone(deleteParams), "labelSelector", "fieldSelector")
)
