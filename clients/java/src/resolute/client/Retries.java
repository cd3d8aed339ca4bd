package resolute.client;

import com.google.protobuf.DescriptorProtos.MethodOptions.IdempotencyLevel;
import io.grpc.MethodDescriptor;
import io.grpc.ServiceDescriptor;
import io.grpc.protobuf.ProtoMethodDescriptorSupplier;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import resolute.api.checkpoints.v1.CheckpointsServiceGrpc;
import resolute.api.checkpoints.v1.MediaServiceGrpc;
import resolute.api.checkpoints.v1.ModelsServiceGrpc;
import resolute.api.experiments.v1.AccessServiceGrpc;
import resolute.api.experiments.v1.ClusterServiceGrpc;
import resolute.api.experiments.v1.ConfigPoliciesServiceGrpc;
import resolute.api.experiments.v1.ContinuationServiceGrpc;
import resolute.api.experiments.v1.ExperimentsServiceGrpc;
import resolute.api.experiments.v1.ImportsServiceGrpc;
import resolute.api.experiments.v1.JobsServiceGrpc;
import resolute.api.experiments.v1.RetentionServiceGrpc;
import resolute.api.experiments.v1.RolesServiceGrpc;
import resolute.api.experiments.v1.TrialsServiceGrpc;
import resolute.api.experiments.v1.WorkspacesServiceGrpc;
import resolute.api.logs.v1.LogsServiceGrpc;
import resolute.api.metrics.v1.MetricsServiceGrpc;
import resolute.api.searcher.v1.SearcherServiceGrpc;

/** Repeats calls that change nothing while their service is away for a moment. */
final class Retries {
    private static final Map<String, ?> POLICY = Map.of(
        "maxAttempts", 4.0,
        "initialBackoff", "0.1s",
        "maxBackoff", "2s",
        "backoffMultiplier", 2.0,
        "retryableStatusCodes", List.of("UNAVAILABLE"));

    private Retries() {}

    /** The service config of a channel. */
    static Map<String, ?> ofReads() {
        List<Map<String, String>> names = Stream.of(
                AccessServiceGrpc.getServiceDescriptor(),
                CheckpointsServiceGrpc.getServiceDescriptor(),
                ClusterServiceGrpc.getServiceDescriptor(),
                ConfigPoliciesServiceGrpc.getServiceDescriptor(),
                ContinuationServiceGrpc.getServiceDescriptor(),
                ExperimentsServiceGrpc.getServiceDescriptor(),
                ImportsServiceGrpc.getServiceDescriptor(),
                JobsServiceGrpc.getServiceDescriptor(),
                LogsServiceGrpc.getServiceDescriptor(),
                MetricsServiceGrpc.getServiceDescriptor(),
                MediaServiceGrpc.getServiceDescriptor(),
                ModelsServiceGrpc.getServiceDescriptor(),
                RetentionServiceGrpc.getServiceDescriptor(),
                RolesServiceGrpc.getServiceDescriptor(),
                SearcherServiceGrpc.getServiceDescriptor(),
                TrialsServiceGrpc.getServiceDescriptor(),
                WorkspacesServiceGrpc.getServiceDescriptor())
            .map(ServiceDescriptor::getMethods)
            .flatMap(methods -> methods.stream())
            .filter(Retries::reads)
            .map(one -> Map.of("service", one.getServiceName(), "method", one.getBareMethodName()))
            .toList();
        return Map.of("methodConfig", List.of(Map.of("name", names, "retryPolicy", POLICY)));
    }

    private static boolean reads(MethodDescriptor<?, ?> method) {
        var described = ((ProtoMethodDescriptorSupplier) method.getSchemaDescriptor()).getMethodDescriptor();
        return described.getOptions().getIdempotencyLevel() == IdempotencyLevel.NO_SIDE_EFFECTS;
    }
}
