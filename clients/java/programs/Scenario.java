import com.google.gson.Gson;
import com.google.protobuf.ByteString;
import io.grpc.StatusRuntimeException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import resolute.api.checkpoints.v1.File;
import resolute.api.experiments.v1.CreateExperimentRequest;
import resolute.api.experiments.v1.Experiment;
import resolute.api.experiments.v1.ExperimentKey;
import resolute.api.experiments.v1.ExperimentSpec;
import resolute.api.experiments.v1.ExperimentsServiceGrpc;
import resolute.api.experiments.v1.GetExperimentRequest;
import resolute.api.experiments.v1.ListExperimentsRequest;
import resolute.api.experiments.v1.ListTrialsRequest;
import resolute.api.experiments.v1.PauseExperimentRequest;
import resolute.api.experiments.v1.Trial;
import resolute.api.experiments.v1.TrialsServiceGrpc;
import resolute.api.experiments.v1.ValidateConfigRequest;
import resolute.api.metrics.v1.GetSeriesRequest;
import resolute.api.metrics.v1.GetSeriesResponse;
import resolute.api.metrics.v1.MetricsServiceGrpc;
import resolute.client.Archives;
import resolute.client.Checkpoints;
import resolute.client.Connection;
import resolute.client.Failure;
import resolute.client.Streams;

/** clients/scenario.md in Java: Scenario DIRECTORY DOWNLOADS. */
public final class Scenario {
    private Scenario() {}

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        Path downloads = Path.of(arguments[1]);
        String url = System.getenv("RESOLUTE_URL");

        // Sign in.
        try (Connection anonymous = Connection.open(url, "")) {
            String token = anonymous.login(System.getenv("RESOLUTE_USER"), System.getenv("RESOLUTE_PASSWORD"));
            try (Connection connection = Connection.open(url, token)) {
                System.out.println(new Gson().toJson(run(anonymous, connection, directory, downloads)));
            }
        }
    }

    private static Map<String, Object> run(Connection anonymous, Connection connection, Path directory, Path downloads)
        throws Exception {
        var experiments = connection.stub(ExperimentsServiceGrpc::newBlockingStub);

        // Create an experiment from a directory.
        var request = CreateExperimentRequest.newBuilder()
            .setRequestId(UUID.randomUUID().toString())
            .setSpec(ExperimentSpec.newBuilder().setConfigYaml(Files.readString(directory.resolve("config.yaml"))))
            .setModelDefinition(ByteString.copyFrom(Archives.pack(directory)))
            .build();
        long number = experiments.createExperiment(request).getExperiment().getNumber();
        ExperimentKey key = numbered(number);

        // Watch it to its end.
        var last = new AtomicReference<Experiment>();
        Streams.watchExperiment(connection, key, last::set);
        Experiment experiment = last.get();

        // Read its best trial, a metric of it, and its log.
        String order = experiment.getSmallerIsBetter() ? "best_validation" : "best_validation desc";
        var listed = ListTrialsRequest.newBuilder().setExperiment(key).setOrderBy(order).setPageSize(1).build();
        Trial best = connection.stub(TrialsServiceGrpc::newBlockingStub).listTrials(listed).getTrials(0);
        var named = GetSeriesRequest.newBuilder().setTrialId(best.getTrialId()).setGroup("training").setName("loss").build();
        GetSeriesResponse series = connection.stub(MetricsServiceGrpc::newBlockingStub).getSeries(named);
        List<String> log = new ArrayList<>();
        Streams.followLog(connection, best.getTrialId(), line -> {
            if (line.getOrigin().equals("task")) {
                log.add(line.getMessage());
            }
        });

        // Download its checkpoint, which verifies the digests.
        Map<String, String> files = new LinkedHashMap<>();
        for (File file : Checkpoints.download(connection, best.getLatestCheckpointId(), downloads)) {
            if (!file.getDigest().isEmpty()) {
                files.put(file.getPath(), file.getDigest());
            }
        }

        Map<String, Object> found = new LinkedHashMap<>();
        found.put("experiment", number);
        found.put("state", experiment.getState().name().replace("EXPERIMENT_STATE_", ""));
        found.put("trial", best.getNumber());
        found.put("best", best.getBestValidation().getValue());
        found.put("steps", series.getStepsList());
        found.put("losses", series.getValuesList());
        found.put("log", log);
        found.put("files", files);
        found.put("failures", mistakes(anonymous, connection, request, key));
        return found;
    }

    /** Gets a typed error for each of five mistakes. */
    private static Map<String, String> mistakes(
        Connection anonymous, Connection connection, CreateExperimentRequest created, ExperimentKey ended) {
        var experiments = connection.stub(ExperimentsServiceGrpc::newBlockingStub);
        var missing = GetExperimentRequest.newBuilder().setExperiment(numbered(999_999)).build();
        var wrong = ValidateConfigRequest.newBuilder().setConfigYaml("searcher: {name: no_such_search}").build();
        var paused = PauseExperimentRequest.newBuilder().setExperiment(ended).build();
        var another = ExperimentSpec.newBuilder().setConfigYaml(created.getSpec().getConfigYaml() + "\ndescription: another");
        var repeated = CreateExperimentRequest.newBuilder().setRequestId(created.getRequestId()).setSpec(another).build();
        return Map.of(
            "noToken", reason(() -> anonymous.stub(ExperimentsServiceGrpc::newBlockingStub)
                .listExperiments(ListExperimentsRequest.getDefaultInstance())),
            "noSuchExperiment", reason(() -> experiments.getExperiment(missing)),
            "wrongConfig", reason(() -> experiments.validateConfig(wrong)),
            "endedExperiment", reason(() -> experiments.pauseExperiment(paused)),
            "sameRequestId", reason(() -> experiments.createExperiment(repeated)));
    }

    private static String reason(Runnable call) {
        try {
            call.run();
            return "";
        } catch (StatusRuntimeException error) {
            return Failure.of(error).reason();
        }
    }

    private static ExperimentKey numbered(long number) {
        return ExperimentKey.newBuilder().setNumber(number).build();
    }
}
