// Command conformance makes the calls that it reads, one JSON object a line, and prints how each ended. Tests compare that
// with what other clients get.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	resolute "github.com/resolute-train/resolute/clients/go"
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
	Code    string   `json:"code"`
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
	if err := client.Connection.Invoke(ctx, it.Method, request, response); err != nil {
		return failed(status.Convert(err))
	}
	answer, err := proto.Marshal(response)
	check(err)
	return outcome{Code: "ok", Answer: answer}
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
