module github.com/resolute-train/resolute/clients/go

go 1.19

require (
	github.com/google/uuid v1.3.0
	google.golang.org/genproto v0.0.0-20200413115906-b5235f65be36
	google.golang.org/grpc v1.33.3
	google.golang.org/protobuf v1.28.1
	lukechampine.com/blake3 v1.1.7
)
