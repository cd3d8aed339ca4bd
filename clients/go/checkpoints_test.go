package resolute

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	checkpointsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/checkpoints/v1"
)

const content = "weights"

// checkpoints serves one checkpoint, whose files are all the same but for their paths.
type checkpoints struct {
	checkpointsv1.UnimplementedCheckpointsServiceServer
	paths []string
}

func (it checkpoints) ListFiles(context.Context, *checkpointsv1.ListFilesRequest) (*checkpointsv1.ListFilesResponse, error) {
	response := &checkpointsv1.ListFilesResponse{}
	for _, path := range it.paths {
		file := &checkpointsv1.File{Path: path}
		if !strings.HasSuffix(path, "/") {
			file.Size = int64(len(content))
		}
		response.Files = append(response.Files, file)
	}
	return response, nil
}

func (checkpoints) ReadFile(_ *checkpointsv1.ReadFileRequest, stream checkpointsv1.CheckpointsService_ReadFileServer) error {
	return stream.Send(&checkpointsv1.ReadFileResponse{Data: []byte(content)})
}

func TestFilesAreWrittenInTheFolder(t *testing.T) {
	client := connected(t, "model/", "model/layer.bin", "..hidden", "/rooted", "model/../flat")
	folder := t.TempDir()

	if _, err := client.DownloadCheckpoint(context.Background(), "any", folder); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"model/layer.bin", "..hidden", "rooted", "flat"} {
		if found, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(found) != content {
			t.Errorf("%s: %q, %v", name, found, err)
		}
	}
}

func TestPathsThatLeaveTheFolderAreRefused(t *testing.T) {
	for _, path := range []string{"../outside", "model/../../outside", "/../outside", "../outside/", ".."} {
		parent := t.TempDir()
		folder := filepath.Join(parent, "downloads")

		_, err := connected(t, path).DownloadCheckpoint(context.Background(), "any", folder)

		if err == nil || !strings.Contains(err.Error(), "outside of its checkpoint") {
			t.Errorf("%s: %v", path, err)
		}
		if written, _ := os.ReadDir(parent); len(written) > 0 {
			t.Errorf("%s: it wrote %s", path, written[0].Name())
		}
	}
}

// connected is a client of a server that lists these paths.
func connected(t *testing.T, paths ...string) *Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	checkpointsv1.RegisterCheckpointsServiceServer(server, checkpoints{paths: paths})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	client, err := Connect(context.Background(), listener.Addr().String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
