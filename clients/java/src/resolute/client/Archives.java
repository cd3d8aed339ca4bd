package resolute.client;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;

/** Packs directories. */
public final class Archives {
    private Archives() {}

    /** Packs a directory as CreateExperiment takes it. The same files give the same bytes. */
    public static byte[] pack(Path directory) throws IOException {
        List<Path> files;
        try (Stream<Path> found = Files.walk(directory)) {
            files = found.filter(one -> Files.isRegularFile(one, LinkOption.NOFOLLOW_LINKS)).sorted().toList();
        }
        var packed = new ByteArrayOutputStream();
        try (var archive = new TarArchiveOutputStream(new GZIPOutputStream(packed), "UTF-8")) {
            archive.setLongFileMode(TarArchiveOutputStream.LONGFILE_POSIX);
            archive.setAddPaxHeadersForNonAsciiNames(true);
            for (Path file : files) {
                var entry = new TarArchiveEntry(directory.relativize(file).toString());
                entry.setSize(Files.size(file));
                entry.setMode(Files.isExecutable(file) ? 0755 : 0644);
                entry.setModTime(0);
                archive.putArchiveEntry(entry);
                Files.copy(file, archive);
                archive.closeArchiveEntry();
            }
        }
        return packed.toByteArray();
    }
}
