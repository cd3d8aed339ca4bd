// Package resolute is a client of Resolute, a deep-learning training platform, over gRPC.
//
// Connect gives a client of each service. The other functions do what takes more than one call: pack a
// directory, follow streams that are opened again when they break, download checkpoints.
package resolute

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	checkpointsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/checkpoints/v1"
	experimentsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/experiments/v1"
	logsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/logs/v1"
	metricsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/metrics/v1"
	searcherv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/searcher/v1"
)

const (
	maxResponseBytes = 16 << 20
	pingInterval     = 20 * time.Second
)

// Client has a client of each service. Close it after use.
type Client struct {
	Access         experimentsv1.AccessServiceClient
	Checkpoints    checkpointsv1.CheckpointsServiceClient
	Cluster        experimentsv1.ClusterServiceClient
	ConfigPolicies experimentsv1.ConfigPoliciesServiceClient
	Continuation   experimentsv1.ContinuationServiceClient
	Experiments    experimentsv1.ExperimentsServiceClient
	Imports        experimentsv1.ImportsServiceClient
	Jobs           experimentsv1.JobsServiceClient
	Logs           logsv1.LogsServiceClient
	Media          checkpointsv1.MediaServiceClient
	Metrics        metricsv1.MetricsServiceClient
	Models         checkpointsv1.ModelsServiceClient
	Retention      experimentsv1.RetentionServiceClient
	Roles          experimentsv1.RolesServiceClient
	Searcher       searcherv1.SearcherServiceClient
	Trials         experimentsv1.TrialsServiceClient
	Workspaces     experimentsv1.WorkspacesServiceClient

	// Connection is what all of them share.
	Connection *grpc.ClientConn
}

// Options say how to connect.
type Options struct {
	// Token is sent with each call; empty for calls that need none, such as Login.
	Token string
	// TLS is how the server is verified; nil for a port without TLS. An address that a URL with https names has TLS in any case.
	TLS *tls.Config
}

// Connect connects to a cluster. Nothing is sent to the services before the first call.
//
// The address is host:port of gRPC, or the URL of the gateway, which is asked for it.
func Connect(ctx context.Context, address string, options Options) (*Client, error) {
	if strings.Contains(address, "://") {
		if strings.HasPrefix(address, "https://") && options.TLS == nil {
			options.TLS = &tls.Config{}
		}
		found, err := discover(ctx, address, options.TLS)
		if err != nil {
			return nil, err
		}
		address = found
	}
	security := grpc.WithInsecure()
	if options.TLS != nil {
		security = grpc.WithTransportCredentials(credentials.NewTLS(options.TLS))
	}
	connection, err := grpc.Dial(
		address,
		security,
		grpc.WithPerRPCCredentials(bearer{options.Token}),
		grpc.WithChainUnaryInterceptor(retryReads),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponseBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingInterval, PermitWithoutStream: true}),
	)
	if err != nil {
		return nil, err
	}
	return over(connection), nil
}

// Login logs in with a name and a password, and returns a token.
func (client *Client) Login(ctx context.Context, user, password string) (string, error) {
	response, err := client.Access.Login(ctx, &experimentsv1.LoginRequest{UserName: user, Password: password})
	return response.GetBearerToken(), err
}

// Close closes the connection. Calls in progress fail.
func (client *Client) Close() error {
	return client.Connection.Close()
}

func over(connection *grpc.ClientConn) *Client {
	return &Client{
		Access:         experimentsv1.NewAccessServiceClient(connection),
		Checkpoints:    checkpointsv1.NewCheckpointsServiceClient(connection),
		Cluster:        experimentsv1.NewClusterServiceClient(connection),
		ConfigPolicies: experimentsv1.NewConfigPoliciesServiceClient(connection),
		Continuation:   experimentsv1.NewContinuationServiceClient(connection),
		Experiments:    experimentsv1.NewExperimentsServiceClient(connection),
		Imports:        experimentsv1.NewImportsServiceClient(connection),
		Jobs:           experimentsv1.NewJobsServiceClient(connection),
		Logs:           logsv1.NewLogsServiceClient(connection),
		Media:          checkpointsv1.NewMediaServiceClient(connection),
		Metrics:        metricsv1.NewMetricsServiceClient(connection),
		Models:         checkpointsv1.NewModelsServiceClient(connection),
		Retention:      experimentsv1.NewRetentionServiceClient(connection),
		Roles:          experimentsv1.NewRolesServiceClient(connection),
		Searcher:       searcherv1.NewSearcherServiceClient(connection),
		Trials:         experimentsv1.NewTrialsServiceClient(connection),
		Workspaces:     experimentsv1.NewWorkspacesServiceClient(connection),
		Connection:     connection,
	}
}

// bearer sends a token, also to ports of loopback that have no TLS.
type bearer struct{ token string }

func (it bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if it.token == "" {
		return nil, nil
	}
	return map[string]string{"authorization": "Bearer " + it.token}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// discover asks a gateway where gRPC is served.
func discover(ctx context.Context, url string, security *tls.Config) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(url, "/")+"/.well-known/resolute.json", nil)
	if err != nil {
		return "", err
	}
	asker := http.Client{Transport: &http.Transport{TLSClientConfig: security, ForceAttemptHTTP2: true}}
	defer asker.CloseIdleConnections()
	response, err := asker.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s; is it the URL of a gateway of Resolute?", url, response.Status)
	}
	var found struct {
		Address string `json:"grpc_address"`
	}
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return "", fmt.Errorf("%s is not the URL of a gateway of Resolute: %w", url, err)
	}
	return found.Address, nil
}
