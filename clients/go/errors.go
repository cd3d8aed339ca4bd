package resolute

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Violation is a field of a request, or a path of a config, that is wrong.
type Violation struct {
	Field       string
	Description string
}

// Failure says why a call failed.
type Failure struct {
	Code codes.Code
	// Reason is one of those in docs/clients.md, such as NOT_FOUND. It is empty when the failure is of the transport or of a
	// proxy: then go by the code.
	Reason     string
	Message    string
	Violations []Violation
	// Metadata says more, such as the name of the object under "resource".
	Metadata map[string]string
}

// FailureOf reads the error of a call.
func FailureOf(err error) Failure {
	failed := status.Convert(err)
	failure := Failure{Code: failed.Code(), Message: failed.Message()}
	for _, detail := range failed.Details() {
		switch it := detail.(type) {
		case *errdetails.ErrorInfo:
			if it.Domain == "resolute" {
				failure.Reason, failure.Metadata = it.Reason, it.Metadata
			}
		case *errdetails.BadRequest:
			for _, one := range it.FieldViolations {
				failure.Violations = append(failure.Violations, Violation{one.Field, one.Description})
			}
		}
	}
	return failure
}
