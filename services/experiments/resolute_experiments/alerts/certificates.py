"""The expiry times of a service's certificates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import structlog
from cryptography import x509

from resolute_experiments.alerts.conditions import CertificateEnd

_log = structlog.get_logger("alerts")


class Certificates:
    """Reads certificate files, and reads a replaced file again.

    Args:
        files: PEM files, each with one certificate or several.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        self._read: dict[Path, tuple[tuple[int, int], Sequence[CertificateEnd]]] = {}

    def ends(self) -> list[CertificateEnd]:
        """When each certificate ends; what cannot be read is left out, and the log says so once."""
        return [end for file in self._files for end in self._of(file)]

    def _of(self, file: Path) -> Sequence[CertificateEnd]:
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
        except OSError:
            stamp = (0, 0)
        if self._read.get(file, (None, ()))[0] != stamp:
            self._read[file] = (stamp, _ends(file))
        return self._read[file][1]


def _ends(file: Path) -> Sequence[CertificateEnd]:
    try:
        loaded = x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError) as failure:
        _log.warning("when a certificate ends is not known", file=str(file), reason=str(failure))
        return ()
    return [
        CertificateEnd(
            file=str(file),
            subject=certificate.subject.rfc4514_string(),
            time=certificate.not_valid_after_utc.timestamp(),
        )
        for certificate in loaded
    ]
