package resolute.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.util.List;
import java.util.Map;

/**
 * Why a call failed.
 *
 * @param reason one of those in docs/clients.md, such as NOT_FOUND; empty when the failure is of the transport or of a proxy:
 *     then go by the code
 * @param violations fields of the request, or paths of the config, that are wrong
 * @param metadata more, such as the name of the object under "resource"
 */
public record Failure(
    Status.Code code,
    String reason,
    String message,
    List<BadRequest.FieldViolation> violations,
    Map<String, String> metadata) {

    /** Reads the error of a call. */
    public static Failure of(Throwable error) {
        Status.Code code = Status.fromThrowable(error).getCode();
        com.google.rpc.Status status = StatusProto.fromThrowable(error);
        if (status == null) {
            return new Failure(code, "", String.valueOf(error.getMessage()), List.of(), Map.of());
        }
        ErrorInfo info = ErrorInfo.getDefaultInstance();
        BadRequest request = BadRequest.getDefaultInstance();
        try {
            for (Any detail : status.getDetailsList()) {
                if (detail.is(ErrorInfo.class) && detail.unpack(ErrorInfo.class).getDomain().equals("resolute")) {
                    info = detail.unpack(ErrorInfo.class);
                } else if (detail.is(BadRequest.class)) {
                    request = detail.unpack(BadRequest.class);
                }
            }
        } catch (InvalidProtocolBufferException damaged) {
            // What cannot be read says nothing: the code remains.
        }
        return new Failure(
            code, info.getReason(), status.getMessage(), request.getFieldViolationsList(), info.getMetadataMap());
    }

    /** Whether the connection broke. Behind a proxy that has other codes, and no reason. */
    boolean isLostConnection() {
        boolean broken = code == Status.Code.INTERNAL || code == Status.Code.UNKNOWN;
        return code == Status.Code.UNAVAILABLE || broken && reason.isEmpty();
    }
}
