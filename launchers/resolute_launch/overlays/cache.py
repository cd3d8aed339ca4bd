"""Cached layers by experiment: packages that startup hooks have installed, so that later runs need not.

::

    <directory>/<key>/            a layer, complete; ``layer.json`` in it is as old as its last use
    <directory>/<key>.lock        held by the run that fills a layer, and shared by those that use one
    <directory>/incoming-*/       layers on their way in, and out
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from resolute.contracts.clock import Clock
from resolute.contracts.files.atomic_files import MalformedFileError, read_json, write_json
from resolute.errors import InvalidArgumentError
from resolute_launch.overlays.overlay import Layer

BYTES_VARIABLE = "RESOLUTE_HOOK_CACHE_BYTES"
"""The most bytes of all layers; 0 to keep none."""
DAYS_VARIABLE = "RESOLUTE_HOOK_CACHE_DAYS"
"""For how many days a layer is kept after its last use."""
DEFAULT_BYTES = 20 << 30
DEFAULT_DAYS = 7
WAIT_SECONDS = 120.0
"""How long a run waits for another one that installs the same."""
_DAY_SECONDS = 86_400.0
_MANIFEST, _LOCK, _INCOMING = "layer.json", ".lock", "incoming-"
_log = logging.getLogger("resolute.supervisor")


@final
class Claim:
    """The use of a layer by a run, until it is closed or its process ends.

    Args:
        cache: The cache.
        key: Name of the layer.
        descriptor: Descriptor of the lock, if it is held.
        layer: The layer to use; None if there is none.
    """

    def __init__(self, cache: LayerCache, key: str, *, descriptor: int | None, layer: Layer | None) -> None:
        self._cache = cache
        self._key = key
        self._descriptor = descriptor
        self.layer = layer

    def fill(self, source: Path, *, check: Callable[[], None]) -> None:
        """Keeps what is in an overlay as the layer, unless another run has brought one meanwhile.

        Args:
            source: The overlay; its files are linked, so that what replaces one there changes nothing here.
            check: Called before each file; may raise ``InterruptedError``, and then nothing is kept.
        """
        if self.layer is None and self._descriptor is not None:
            if self._cache.put(self._key, source, check=check):
                fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            else:
                self.close()

    def close(self) -> None:
        """Gives the layer up."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@final
class LayerCache:
    """A directory of layers, used by all runs of a machine, or of machines that share it.

    Args:
        directory: The directory. If it is missing, it is created with permissions for its owner only.
        clock: Clock for the last use of a layer and for waiting.
        most_bytes: Most bytes of all layers. The least recently used layers are removed first.
        days: Number of days that a layer is kept after its last use.
    """

    def __init__(
        self, directory: Path, *, clock: Clock, most_bytes: int = DEFAULT_BYTES, days: float = DEFAULT_DAYS
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._most_bytes = most_bytes
        self._oldest_seconds = days * _DAY_SECONDS

    @classmethod
    def from_environment(cls, directory: Path, variables: Mapping[str, str], *, clock: Clock) -> LayerCache:
        """Makes the cache with the limits that variables name.

        Raises:
            InvalidArgumentError: One is no number.
        """
        limits = []
        for name, default in ((BYTES_VARIABLE, DEFAULT_BYTES), (DAYS_VARIABLE, DEFAULT_DAYS)):
            text = variables.get(name) or str(default)
            if not text.isdecimal():
                raise InvalidArgumentError(f"{name} is {text!r}; give a whole number, 0 or more")
            limits.append(int(text))
        return cls(directory, clock=clock, most_bytes=limits[0], days=limits[1])

    def claim(self, key: str, *, pause: Callable[[], None]) -> Claim:
        """Finds a layer, or becomes the one who fills it; waits a bounded time for another run that does.

        Args:
            key: Name of the layer.
            pause: Waits a moment before the next look; may raise ``InterruptedError`` to end that.

        Returns:
            The claim; without a layer and without a part in it where the cache cannot be used.
        """
        nothing = Claim(self, key, descriptor=None, layer=None)
        if not self._most_bytes:
            return nothing
        try:
            self._make_directory()
            self._sweep()
            deadline = self._clock.monotonic() + WAIT_SECONDS
            while True:
                if (claim := self._try_to_claim(key)) is not None:
                    return claim
                if self._clock.monotonic() > deadline:
                    break
                pause()
        except InterruptedError:
            raise
        except OSError as failure:
            _log.warning("the cache of hooks %s cannot be used: %s", self._directory, failure)
        return nothing

    def put(self, key: str, source: Path, *, check: Callable[[], None]) -> bool:
        """Keeps a copy of an overlay as a layer: whole, or not at all.

        Args:
            key: Name of the layer.
            source: The overlay.
            check: Called before each file; may raise ``InterruptedError``, and then nothing is kept.

        Returns:
            Whether there is a layer now. That of an overlay which is too large is empty, so that no run waits
            for it again.
        """
        incoming: Path | None = None
        try:
            incoming = Path(tempfile.mkdtemp(prefix=_INCOMING, dir=self._directory))
            size = _copy(source, incoming, most_bytes=self._most_bytes, check=check)
            if size > self._most_bytes:
                _log.warning("what the startup hook has installed has more bytes than %s", BYTES_VARIABLE)
                shutil.rmtree(incoming)
                incoming.mkdir(mode=0o700)
                size = 0
            write_json(incoming / _MANIFEST, {"made_in": str(source.absolute()), "bytes": size}, sync=True)
            self._touch(incoming)
            incoming.rename(self._directory / key)
            self._sweep(but=key)
        except InterruptedError:
            return False
        except OSError as failure:
            _log.warning("the cache of hooks %s keeps nothing now: %s", self._directory, failure)
            return False
        else:
            return True
        finally:
            if incoming is not None:
                shutil.rmtree(incoming, ignore_errors=True)

    def _make_directory(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = self._directory.lstat()
        # Others may have made it first, in a directory for temporary files: its content is run.
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise PermissionError("it belongs to another user, or others may write to it")

    def _try_to_claim(self, key: str) -> Claim | None:
        descriptor = os.open(self._directory / f"{key}{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        claimed = False
        try:
            alone = _lock(descriptor, fcntl.LOCK_EX)
            layer = self._layer(key)
            if not self._is_current(key, descriptor):
                return None
            if layer is not None:
                if not _lock(descriptor, fcntl.LOCK_SH) or self._layer(key) is None:
                    return None
                self._touch(layer.path)
            elif not alone:
                return None
            claimed = True
            return Claim(self, key, descriptor=descriptor, layer=layer)
        finally:
            if not claimed:
                os.close(descriptor)

    def _layer(self, key: str) -> Layer | None:
        path = self._directory / key
        made_in = _manifest(path).get("made_in")
        return None if made_in is None else Layer(path, Path(made_in))

    def _is_current(self, key: str, descriptor: int) -> bool:
        """Whether a lock is still the one that others find by its name."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(descriptor), (self._directory / f"{key}{_LOCK}").stat())
        return False

    def _touch(self, path: Path) -> None:
        now = self._clock.time()
        os.utime(path / _MANIFEST, (now, now))

    def _sweep(self, but: str = "") -> None:
        """Removes layers that were not used for long or have no room, and what was left half-copied."""
        now, total = self._clock.time(), 0
        for path in self._directory.glob(f"{_INCOMING}*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < now - _DAY_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
        layers = []
        for manifest in self._directory.glob(f"*/{_MANIFEST}"):
            with suppress(FileNotFoundError):
                size = int(_manifest(manifest.parent).get("bytes", 0))
                layers.append((manifest.stat().st_mtime, manifest.parent, size))
        for used, path, size in sorted(layers, reverse=True):
            total += size
            if path.name != but and (total > self._most_bytes or used < now - self._oldest_seconds):
                self._remove(path)
        for lock in self._directory.glob(f"*{_LOCK}"):
            # Hooks that failed have left it.
            with suppress(FileNotFoundError):
                if lock.stat().st_mtime < now - _DAY_SECONDS and self._layer(lock.stem) is None:
                    self._remove(lock.with_suffix(""))

    def _remove(self, path: Path) -> None:
        """Removes a layer, if it is there, and its lock, unless a run has that."""
        lock = path.with_name(f"{path.name}{_LOCK}")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if _lock(descriptor, fcntl.LOCK_EX) and self._is_current(path.name, descriptor):
                leaving = Path(tempfile.mkdtemp(prefix=_INCOMING, dir=self._directory))
                with suppress(FileNotFoundError):
                    path.rename(leaving / path.name)
                lock.unlink()
                shutil.rmtree(leaving, ignore_errors=True)
        finally:
            os.close(descriptor)


def _manifest(path: Path) -> dict[str, Any]:
    """What is known of a layer; nothing of one that is not there."""
    try:
        return read_json(path / _MANIFEST) or {}
    except MalformedFileError:
        return {}


def _lock(descriptor: int, kind: int) -> bool:
    """Takes a lock until its file is closed; False if somebody has it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _copy(source: Path, target: Path, *, most_bytes: int, check: Callable[[], None]) -> int:
    """Copies a directory, by links where the file system can.

    Not by ``copytree``, which goes on to the end after an error.

    Returns:
        The bytes of its files; more than ``most_bytes`` where it stopped because of them.
    """

    def fail(failure: OSError) -> None:
        raise failure

    size = 0
    for folder, folders, names in os.walk(source, onerror=fail):
        here = target / Path(folder).relative_to(source)
        here.mkdir(exist_ok=True)
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for path in (Path(folder, name) for name in (*names, *links)):
            check()
            size += path.lstat().st_size
            if size > most_bytes:
                return size
            try:
                os.link(path, here / path.name, follow_symlinks=False)
            except OSError:
                shutil.copy2(path, here / path.name, follow_symlinks=False)
    return size
