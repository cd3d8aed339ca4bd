package resolute

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"

	experimentsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/experiments/v1"
	logsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/logs/v1"
)

const longestSilence = time.Minute

// WatchExperiment gives the states of an experiment, from the present one to the last.
func (client *Client) WatchExperiment(
	ctx context.Context, key *experimentsv1.ExperimentKey, take func(*experimentsv1.Experiment) error,
) error {
	watched := &experimentsv1.WatchExperimentsRequest_ExperimentSubscription{Key: "it", Experiment: key}
	request := &experimentsv1.WatchExperimentsRequest{
		Experiments: []*experimentsv1.WatchExperimentsRequest_ExperimentSubscription{watched},
	}
	ended := false
	return reopened(ctx, &ended, func(ctx context.Context) (func() error, error) {
		stream, err := client.Experiments.WatchExperiments(ctx, request)
		return func() error {
			response, err := stream.Recv()
			experiment := response.GetExperimentChange().GetExperiment()
			if err != nil || experiment == nil {
				return err
			}
			watched.AfterRevision, ended = experiment.Revision, experiment.EndTime != nil
			return taken(take(experiment))
		}, err
	})
}

// FollowLog gives the log of a trial, line by line, until it is complete.
func (client *Client) FollowLog(ctx context.Context, trialID string, take func(*logsv1.Line) error) error {
	followed := &logsv1.FollowLinesRequest_Subscription{Key: "it", Filter: &logsv1.LineFilter{TrialId: trialID}}
	request := &logsv1.FollowLinesRequest{Subscriptions: []*logsv1.FollowLinesRequest_Subscription{followed}}
	ended := false
	return reopened(ctx, &ended, func(ctx context.Context) (func() error, error) {
		stream, err := client.Logs.FollowLines(ctx, request)
		return func() error {
			response, err := stream.Recv()
			if err != nil || response.Key == "" {
				return err
			}
			for _, line := range response.Lines {
				if err := take(line); err != nil {
					return taken(err)
				}
			}
			followed.AfterLineId, ended = &response.Cursor, response.Complete
			return nil
		}, err
	})
}

// refusal is an error of the caller, which ends a stream for good.
type refusal struct{ error }

func (it refusal) Unwrap() error { return it.error }

func taken(err error) error {
	if err == nil {
		return nil
	}
	return refusal{err}
}

// lost says whether a connection broke. Behind a proxy that has other codes, and no reason.
func lost(err error) bool {
	failure := FailureOf(err)
	broken := failure.Code == codes.Internal || failure.Code == codes.Unknown
	return failure.Code == codes.Unavailable || broken && failure.Reason == ""
}

// reopened reads a stream, and opens it again when its connection breaks or it ends before its time, or when nothing has come for a
// minute.
func reopened(ctx context.Context, ended *bool, open func(context.Context) (func() error, error)) error {
	for attempt := 1; ; attempt++ {
		received, silent, err := read(ctx, open)
		var refused refusal
		switch {
		case err == nil && *ended:
			return nil
		case errors.As(err, &refused):
			return refused.error
		case err != nil && (ctx.Err() != nil || !silent && !lost(err)):
			return err
		}
		if received {
			attempt = 1
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

func read(ctx context.Context, open func(context.Context) (func() error, error)) (received, silent bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(longestSilence, cancel)
	defer func() { silent = !timer.Stop() }()
	next, err := open(ctx)
	for err == nil {
		if err = next(); err == nil {
			received = true
			timer.Reset(longestSilence)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return received, silent, err
}
