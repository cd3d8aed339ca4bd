package resolute.client;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonSyntaxException;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import resolute.api.experiments.v1.AccessServiceGrpc;
import resolute.api.experiments.v1.LoginRequest;

/** A connection to a cluster over gRPC, on which all generated stubs can be made. Close it after use. */
public final class Connection implements AutoCloseable {
    private static final int MAX_RESPONSE_BYTES = 16 << 20;
    private static final Duration PING_INTERVAL = Duration.ofSeconds(20);
    private static final Duration LONGEST_CALL = Duration.ofSeconds(60);

    private final ManagedChannel channel;

    private Connection(ManagedChannel channel) {
        this.channel = channel;
    }

    /**
     * Connects to a cluster. Nothing is sent to the services before the first call.
     *
     * @param url the gateway's, which is asked for the address of gRPC. With https the public authorities are trusted, and
     *     those of the system property javax.net.ssl.trustStore.
     * @param token sent with each call; empty for calls that need none, such as {@link #login}
     */
    public static Connection open(String url, String token) throws IOException, InterruptedException {
        ChannelCredentials security =
            url.startsWith("https://") ? TlsChannelCredentials.create() : InsecureChannelCredentials.create();
        ManagedChannel channel = Grpc.newChannelBuilder(discover(url), security)
            .maxInboundMessageSize(MAX_RESPONSE_BYTES)
            .keepAliveTime(PING_INTERVAL.toSeconds(), TimeUnit.SECONDS)
            .keepAliveWithoutCalls(true)
            .defaultServiceConfig(Retries.ofReads())
            .enableRetry()
            .intercept(new EachCall(token))
            .build();
        return new Connection(channel);
    }

    /** Makes a stub, such as {@code connection.stub(TrialsServiceGrpc::newBlockingStub)}. */
    public <S> S stub(Function<? super Channel, S> make) {
        return make.apply(channel);
    }

    /** Logs in with a name and a password; returns a token. */
    public String login(String user, String password) {
        LoginRequest request = LoginRequest.newBuilder().setUserName(user).setPassword(password).build();
        return stub(AccessServiceGrpc::newBlockingStub).login(request).getBearerToken();
    }

    /** Calls in progress fail. */
    @Override
    public void close() {
        channel.shutdownNow();
    }

    private static String discover(String url) throws IOException, InterruptedException {
        URI asked = URI.create(url.replaceAll("/+$", "") + "/.well-known/resolute.json");
        // By default it asks for an upgrade to HTTP/2, for which the gateway would log a warning.
        HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(LONGEST_CALL).build();
        HttpRequest request = HttpRequest.newBuilder(asked).timeout(LONGEST_CALL).build();
        var response = client.send(request, BodyHandlers.ofString());
        try {
            if (response.statusCode() == 200) {
                return new Gson().fromJson(response.body(), JsonObject.class).get("grpc_address").getAsString();
            }
        } catch (JsonSyntaxException | NullPointerException error) {
            // Something else answers there.
        }
        throw new IOException(url + " is not the URL of a gateway of Resolute: it answered " + response.statusCode());
    }

    /** Gives each call the token, and those with one answer a deadline. */
    private record EachCall(String token) implements ClientInterceptor {
        private static final Metadata.Key<String> AUTHORIZATION =
            Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

        @Override
        public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
            boolean unbounded = options.getDeadline() == null && method.getType() == MethodDescriptor.MethodType.UNARY;
            CallOptions bounded =
                unbounded ? options.withDeadlineAfter(LONGEST_CALL.toSeconds(), TimeUnit.SECONDS) : options;
            return new SimpleForwardingClientCall<>(next.newCall(method, bounded)) {
                @Override
                public void start(Listener<A> listener, Metadata headers) {
                    if (!token.isEmpty()) {
                        headers.put(AUTHORIZATION, "Bearer " + token);
                    }
                    super.start(listener, headers);
                }
            };
        }
    }
}
