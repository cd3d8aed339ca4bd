// Command conformance makes the calls that it reads, one JSON object a line, and prints how each ended. Tests compare that
// with what other clients get.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	resolute "github.com/resolute-train/resolute/clients/go"
	// Known to the registry by being imported.
	_ "github.com/resolute-train/resolute/clients/go/gen/resolute/api/gateway/v1"
	_ "github.com/resolute-train/resolute/clients/go/gen/resolute/api/preemption/v1"
)

type call struct {
	Method  string `json:"method"`
	Token   string `json:"token"`
	Request []byte `json:"request"`
}

type detail struct {
	Type  string `json:"type"`
	Value []byte `json:"value"`
}

type outcome struct {
	Code string `json:"code"`
	// Ended says that a stream ended before its first answer.
	Ended   bool     `json:"ended"`
	Answer  []byte   `json:"answer"`
	Message string   `json:"message"`
	Details []detail `json:"details"`
}

func main() {
	ctx := context.Background()
	answers := json.NewEncoder(os.Stdout)
	calls := bufio.NewScanner(os.Stdin)
	calls.Buffer(nil, 64<<20)
	for calls.Scan() {
		var it call
		check(json.Unmarshal(calls.Bytes(), &it))
		client, err := resolute.Connect(ctx, os.Getenv("RESOLUTE_URL"), resolute.Options{Token: it.Token})
		check(err)
		check(answers.Encode(made(ctx, client, it)))
		check(client.Close())
	}
	check(calls.Err())
}

func made(ctx context.Context, client *resolute.Client, it call) outcome {
	name := strings.ReplaceAll(strings.TrimPrefix(it.Method, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	check(err)
	method := found.(protoreflect.MethodDescriptor)
	request, response := empty(method.Input()), empty(method.Output())
	check(proto.Unmarshal(it.Request, request))
	if method.IsStreamingServer() {
		err = first(ctx, client, it.Method, request, response)
	} else {
		// A stream of requests with one request is sent as a single one is.
		err = client.Connection.Invoke(ctx, it.Method, request, response)
	}
	if errors.Is(err, io.EOF) {
		return outcome{Code: "ok", Ended: true}
	}
	if err != nil {
		return failed(status.Convert(err))
	}
	answer, err := proto.Marshal(response)
	check(err)
	return outcome{Code: "ok", Answer: answer}
}

// first reads the first answer of a stream.
func first(ctx context.Context, client *resolute.Client, method string, request, response proto.Message) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(response)
}

func failed(failure *status.Status) outcome {
	details := []detail{}
	for _, one := range failure.Proto().GetDetails() {
		details = append(details, detail{one.TypeUrl[strings.LastIndex(one.TypeUrl, "/")+1:], one.Value})
	}
	return outcome{Code: code(failure.Code()), Message: failure.Message(), Details: details}
}

// code gives the name that the Connect protocol has for a status.
func code(it codes.Code) string {
	var named strings.Builder
	for i, letter := range it.String() {
		if i > 0 && 'A' <= letter && letter <= 'Z' {
			named.WriteByte('_')
		}
		named.WriteRune(letter)
	}
	return strings.ToLower(named.String())
}

func empty(message protoreflect.MessageDescriptor) proto.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(message.FullName())
	check(err)
	return kind.New().Interface()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
