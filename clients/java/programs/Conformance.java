import com.google.gson.Gson;
import com.google.protobuf.Any;
import com.google.protobuf.MessageLite;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Context;
import io.grpc.MethodDescriptor;
import io.grpc.ServiceDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ClientCalls;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import resolute.client.Connection;

/** Makes the calls that it reads, one JSON object a line, and prints how each ended. Tests compare that with what other clients get. */
public final class Conformance {
    private Conformance() {}

    private record Call(String method, String token, String request) {}

    private record Detail(String type, String value) {}

    /** How a call ended; {@code ended} says that a stream did before its first answer. */
    private record Outcome(String code, boolean ended, String answer, String message, List<Detail> details) {}

    public static void main(String[] arguments) throws IOException, InterruptedException, ReflectiveOperationException {
        // Records are read and written by Gson 2.10 and newer.
        Gson gson = new Gson();
        var calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            Call call = gson.fromJson(line, Call.class);
            try (Connection connection = Connection.open(System.getenv("RESOLUTE_URL"), call.token())) {
                System.out.println(gson.toJson(made(connection, call)));
            }
        }
    }

    private static Outcome made(Connection connection, Call call) throws ReflectiveOperationException {
        MethodDescriptor<MessageLite, MessageLite> method = find(call.method().substring(1));
        MessageLite request = method.parseRequest(new ByteArrayInputStream(Base64.getDecoder().decode(call.request())));
        try {
            MessageLite answer = connection.stub(channel -> first(channel, method, request));
            return answer == null
                ? new Outcome("ok", true, null, null, null)
                : new Outcome("ok", false, encoded(answer.toByteArray()), null, null);
        } catch (StatusRuntimeException error) {
            com.google.rpc.Status status = StatusProto.fromThrowable(error);
            List<Detail> details = status.getDetailsList().stream().map(Conformance::detail).toList();
            String code = error.getStatus().getCode().name().toLowerCase(Locale.ROOT).replace("cancelled", "canceled");
            return new Outcome(code, false, null, status.getMessage(), details);
        }
    }

    /** The answer, or of a stream the first; null if it ends without one. A stream of requests has one request. */
    private static MessageLite first(
        Channel channel, MethodDescriptor<MessageLite, MessageLite> method, MessageLite request) {
        if (method.getType() != MethodDescriptor.MethodType.SERVER_STREAMING) {
            return ClientCalls.blockingUnaryCall(channel, method, CallOptions.DEFAULT, request);
        }
        Context.CancellableContext context = Context.current().withCancellation();
        Context outside = context.attach();
        try (context) {
            Iterator<MessageLite> answers =
                ClientCalls.blockingServerStreamingCall(channel, method, CallOptions.DEFAULT, request);
            return answers.hasNext() ? answers.next() : null;
        } finally {
            context.detach(outside);
        }
    }

    @SuppressWarnings("unchecked")
    private static MethodDescriptor<MessageLite, MessageLite> find(String name) throws ReflectiveOperationException {
        Class<?> stubs = Class.forName(name.substring(0, name.indexOf('/')) + "Grpc");
        var service = (ServiceDescriptor) stubs.getMethod("getServiceDescriptor").invoke(null);
        return (MethodDescriptor<MessageLite, MessageLite>)
            service.getMethods().stream().filter(one -> one.getFullMethodName().equals(name)).findFirst().orElseThrow();
    }

    private static Detail detail(Any detail) {
        String type = detail.getTypeUrl().substring(detail.getTypeUrl().lastIndexOf('/') + 1);
        return new Detail(type, encoded(detail.getValue().toByteArray()));
    }

    private static String encoded(byte[] content) {
        return Base64.getEncoder().encodeToString(content);
    }
}
