package resolute.client;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import resolute.api.checkpoints.v1.CheckpointsServiceGrpc;
import resolute.api.checkpoints.v1.CheckpointsServiceGrpc.CheckpointsServiceBlockingStub;
import resolute.api.checkpoints.v1.File;
import resolute.api.checkpoints.v1.ListFilesRequest;
import resolute.api.checkpoints.v1.ListFilesResponse;
import resolute.api.checkpoints.v1.ReadFileRequest;
import resolute.api.checkpoints.v1.ReadFileResponse;

/** Files of checkpoints, read through the service and compared with their digests. */
public final class Checkpoints {
    private static final BouncyCastleProvider BLAKE3 = new BouncyCastleProvider();

    private Checkpoints() {}

    /** Lists all files and directories of a checkpoint. */
    public static List<File> list(Connection connection, String checkpointId) {
        var stub = connection.stub(CheckpointsServiceGrpc::newBlockingStub);
        var request = ListFilesRequest.newBuilder().setCheckpointId(checkpointId);
        List<File> files = new ArrayList<>();
        do {
            ListFilesResponse page = stub.listFiles(request.build());
            files.addAll(page.getFilesList());
            request.setPageToken(page.getNextPageToken());
        } while (!request.getPageToken().isEmpty());
        return files;
    }

    /**
     * Downloads a checkpoint whose storage the services can reach; for buckets take PresignDownloads.
     *
     * @return what was written
     * @throws IOException a file does not match its digest, or cannot be written
     */
    public static List<File> download(Connection connection, String checkpointId, Path folder) throws IOException {
        Path root = folder.toAbsolutePath().normalize();
        List<File> files = list(connection, checkpointId);
        var stub = connection.stub(CheckpointsServiceGrpc::newBlockingStub);
        for (File file : files) {
            Path target = root.resolve(file.getPath()).normalize();
            if (!target.startsWith(root)) {
                throw new IOException(file.getPath() + " lies outside of its checkpoint");
            }
            if (file.getPath().endsWith("/")) {
                Files.createDirectories(target);
            } else {
                Files.createDirectories(target.getParent());
                read(stub, checkpointId, file, target);
            }
        }
        return files;
    }

    private static void read(CheckpointsServiceBlockingStub stub, String checkpointId, File file, Path target)
        throws IOException {
        String algorithm = file.getDigest().isEmpty() ? "sha256" : file.getDigest().split(":", 2)[0];
        MessageDigest digest = digest(algorithm);
        var request = ReadFileRequest.newBuilder().setCheckpointId(checkpointId).setPath(file.getPath()).build();
        long size = 0;
        try (OutputStream written = new DigestOutputStream(Files.newOutputStream(target), digest)) {
            for (var answers = stub.readFile(request); answers.hasNext();) {
                ReadFileResponse answer = answers.next();
                answer.getData().writeTo(written);
                size += answer.getData().size();
            }
        }
        String found = algorithm + ":" + HexFormat.of().formatHex(digest.digest());
        boolean matches = file.getDigest().isEmpty() || found.equals(file.getDigest());
        if (size != file.getSize() || !matches) {
            throw new IOException(file.getPath() + " does not match its digest " + file.getDigest() + "; download it again");
        }
    }

    private static MessageDigest digest(String algorithm) throws IOException {
        try {
            return switch (algorithm) {
                case "blake3" -> MessageDigest.getInstance("BLAKE3-256", BLAKE3);
                case "sha256" -> MessageDigest.getInstance("SHA-256");
                default -> throw new IOException("digests of the kind " + algorithm + " are unknown here; upgrade this client");
            };
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing);
        }
    }
}
