package resolute

import (
	"context"
	"math/rand"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

const (
	attempts    = 4
	firstWait   = 100 * time.Millisecond
	longestWait = 2 * time.Second
)

// retryReads repeats calls that change nothing when the service is away for a moment.
func retryReads(
	ctx context.Context, method string, request, response interface{}, connection *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	for attempt := 1; ; attempt++ {
		err := invoke(ctx, method, request, response, connection, options...)
		if status.Code(err) != codes.Unavailable || attempt == attempts || !reads(method) {
			return err
		}
		if pause(ctx, attempt) != nil {
			return err
		}
	}
}

// pause waits before another attempt: 0.1 s, then twice as long each time, at most 2 s, with a random part.
func pause(ctx context.Context, attempt int) error {
	longest := longestWait
	if attempt < 6 {
		longest = firstWait << (attempt - 1)
	}
	timer := time.NewTimer(time.Duration(float64(longest) * (0.5 + rand.Float64()/2)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reads says whether a method, such as "/package.Service/Method", changes nothing.
func reads(method string) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return false
	}
	options, _ := found.Options().(*descriptorpb.MethodOptions)
	return options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}
