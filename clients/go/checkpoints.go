package resolute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"lukechampine.com/blake3"

	checkpointsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/checkpoints/v1"
)

// ListFiles lists all files and directories of a checkpoint.
func (client *Client) ListFiles(ctx context.Context, checkpointID string) ([]*checkpointsv1.File, error) {
	var files []*checkpointsv1.File
	request := &checkpointsv1.ListFilesRequest{CheckpointId: checkpointID}
	for {
		page, err := client.Checkpoints.ListFiles(ctx, request)
		if err != nil {
			return nil, err
		}
		files = append(files, page.Files...)
		if page.NextPageToken == "" {
			return files, nil
		}
		request.PageToken = page.NextPageToken
	}
}

// DownloadCheckpoint downloads a checkpoint whose storage the services can reach, and verifies the digest of each file. For
// buckets take PresignDownloads. It returns what it has written.
func (client *Client) DownloadCheckpoint(ctx context.Context, checkpointID, folder string) ([]*checkpointsv1.File, error) {
	files, err := client.ListFiles(ctx, checkpointID)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		target, err := inside(folder, file.Path)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(file.Path, "/") {
			err = os.MkdirAll(target, 0o777)
		} else {
			err = client.downloadFile(ctx, checkpointID, file, target)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (client *Client) downloadFile(ctx context.Context, checkpointID string, file *checkpointsv1.File, target string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	algorithm, hasher, err := hasherFor(file.Digest)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	written, err := os.Create(target)
	if err != nil {
		return err
	}
	defer written.Close()
	stream, err := client.Checkpoints.ReadFile(ctx, &checkpointsv1.ReadFileRequest{CheckpointId: checkpointID, Path: file.Path})
	if err != nil {
		return err
	}
	var size int64
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		size += int64(len(response.Data))
		if _, err := io.MultiWriter(written, hasher).Write(response.Data); err != nil {
			return err
		}
	}
	digest := algorithm + ":" + hex.EncodeToString(hasher.Sum(nil))
	if size != file.Size || file.Digest != "" && digest != file.Digest {
		return fmt.Errorf("%s does not match its digest %s; download it again", file.Path, file.Digest)
	}
	return written.Close()
}

// inside gives the place of a path in a folder. The server names the path: it must not lead elsewhere.
func inside(folder, path string) (string, error) {
	target := filepath.Join(folder, filepath.FromSlash(path))
	relative, err := filepath.Rel(folder, target)
	if err != nil || relative == ".." || strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s lies outside of its checkpoint", path)
	}
	return target, nil
}

func hasherFor(digest string) (string, hash.Hash, error) {
	algorithm, _, _ := strings.Cut(digest, ":")
	switch algorithm {
	case "blake3":
		return algorithm, blake3.New(32, nil), nil
	case "sha256", "":
		return algorithm, sha256.New(), nil
	}
	return "", nil, fmt.Errorf("digests of the kind %s are unknown here; upgrade this client", algorithm)
}
