package server

import "slices"

// Query parameters by verb.
var (
	getParams    = params("resourceVersion", "includeObject", "freshStatus")
	writeParams  = params("dryRun", "fieldManager", "fieldValidation")
	patchParams  = append(slices.Clone(writeParams), "force")
	deleteParams = params("dryRun", "gracePeriodSeconds", "propagationPolicy", "orphanDependents")

	deleteCollectionParams = append(slices.Clone(deleteParams), "labelSelector", "fieldSelector")
)
