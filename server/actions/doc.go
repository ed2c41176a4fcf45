// Package actions answers Transactions and Rollbacks: objects that a client creates to do
// several operations.
//
// It reads a body with operations, or with a revision to return to. It calls the store with
// transactions, and answers with a status that has the results.
//
//	actions.go         the endpoints
//	action.go          actions as API objects
//	transaction.go     operations that are all done or none
//	operation.go       one operation
//	storedlength.go    length of the stored objects of a transaction
//	rights.go          the rights of what an action does
//	refusedsteps.go    errors of several operations
//	rollback.go        return to a revision at once
//	rollbackstep.go    return to a revision in steps
package actions
