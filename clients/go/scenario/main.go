// Command scenario is clients/scenario.md in Go: scenario DIRECTORY DOWNLOADS.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	resolute "github.com/resolute-train/resolute/clients/go"
	experimentsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/experiments/v1"
	logsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/logs/v1"
	metricsv1 "github.com/resolute-train/resolute/clients/go/gen/resolute/api/metrics/v1"
)

type result struct {
	Experiment int64             `json:"experiment"`
	State      string            `json:"state"`
	Trial      int64             `json:"trial"`
	Best       float64           `json:"best"`
	Steps      []int64           `json:"steps"`
	Losses     []float64         `json:"losses"`
	Log        []string          `json:"log"`
	Files      map[string]string `json:"files"`
	Failures   map[string]string `json:"failures"`
}

func main() {
	ctx := context.Background()
	directory, downloads := os.Args[1], os.Args[2]
	url := os.Getenv("RESOLUTE_URL")

	// Sign in.
	anonymous := must(resolute.Connect(ctx, url, resolute.Options{}))
	defer anonymous.Close()
	token := must(anonymous.Login(ctx, os.Getenv("RESOLUTE_USER"), os.Getenv("RESOLUTE_PASSWORD")))
	client := must(resolute.Connect(ctx, url, resolute.Options{Token: token}))
	defer client.Close()

	// Create an experiment from a directory.
	config := must(os.ReadFile(filepath.Join(directory, "config.yaml")))
	request := &experimentsv1.CreateExperimentRequest{
		RequestId:       uuid.NewString(),
		Spec:            &experimentsv1.ExperimentSpec{ConfigYaml: string(config)},
		ModelDefinition: must(resolute.PackDirectory(directory)),
	}
	experiment := must(client.Experiments.CreateExperiment(ctx, request)).Experiment
	key := numbered(experiment.Number)

	// Watch it to its end.
	check(client.WatchExperiment(ctx, key, func(state *experimentsv1.Experiment) error {
		experiment = state
		return nil
	}))

	// Read its best trial, a metric of it, and its log.
	order := "best_validation desc"
	if experiment.SmallerIsBetter {
		order = "best_validation"
	}
	trials := must(client.Trials.ListTrials(ctx, &experimentsv1.ListTrialsRequest{Experiment: key, OrderBy: order, PageSize: 1}))
	best := trials.Trials[0]
	series := must(client.Metrics.GetSeries(ctx, &metricsv1.GetSeriesRequest{TrialId: best.TrialId, Group: "training", Name: "loss"}))
	var lines []string
	check(client.FollowLog(ctx, best.TrialId, func(line *logsv1.Line) error {
		if line.Origin == "task" {
			lines = append(lines, line.Message)
		}
		return nil
	}))

	// Download its checkpoint, which verifies the digests.
	files := map[string]string{}
	for _, file := range must(client.DownloadCheckpoint(ctx, best.GetLatestCheckpointId(), downloads)) {
		if file.Digest != "" {
			files[file.Path] = file.Digest
		}
	}

	check(json.NewEncoder(os.Stdout).Encode(result{
		Experiment: experiment.Number,
		State:      experiment.State.String()[len("EXPERIMENT_STATE_"):],
		Trial:      best.Number,
		Best:       best.BestValidation.GetValue(),
		Steps:      series.Steps,
		Losses:     series.Values,
		Log:        lines,
		Files:      files,
		Failures:   mistakes(ctx, anonymous, client, request, key),
	}))
}

// mistakes gets a typed error for each of five mistakes.
func mistakes(
	ctx context.Context, anonymous, client *resolute.Client, created *experimentsv1.CreateExperimentRequest,
	ended *experimentsv1.ExperimentKey,
) map[string]string {
	_, noToken := anonymous.Experiments.ListExperiments(ctx, &experimentsv1.ListExperimentsRequest{})
	_, noSuchExperiment := client.Experiments.GetExperiment(ctx, &experimentsv1.GetExperimentRequest{Experiment: numbered(999_999)})
	wrong := "searcher: {name: no_such_search}"
	_, wrongConfig := client.Experiments.ValidateConfig(ctx, &experimentsv1.ValidateConfigRequest{ConfigYaml: wrong})
	_, endedExperiment := client.Experiments.PauseExperiment(ctx, &experimentsv1.PauseExperimentRequest{Experiment: ended})
	_, sameRequestID := client.Experiments.CreateExperiment(ctx, &experimentsv1.CreateExperimentRequest{
		RequestId: created.RequestId,
		Spec:      &experimentsv1.ExperimentSpec{ConfigYaml: created.Spec.ConfigYaml + "\ndescription: another"},
	})
	return map[string]string{
		"noToken":          resolute.FailureOf(noToken).Reason,
		"noSuchExperiment": resolute.FailureOf(noSuchExperiment).Reason,
		"wrongConfig":      resolute.FailureOf(wrongConfig).Reason,
		"endedExperiment":  resolute.FailureOf(endedExperiment).Reason,
		"sameRequestId":    resolute.FailureOf(sameRequestID).Reason,
	}
}

func numbered(number int64) *experimentsv1.ExperimentKey {
	return &experimentsv1.ExperimentKey{Key: &experimentsv1.ExperimentKey_Number{Number: number}}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
