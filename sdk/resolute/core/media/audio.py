"""Encodes sounds as WAV, or takes them as encoded files."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from resolute.core.media.arrays import to_array

_MAX_CHANNELS = 8


def audio_content(audio: Any, *, sample_rate: int | None) -> bytes:
    """Returns the bytes of a sound file.

    Args:
        audio: The path or the bytes of a WAV, MP3, Ogg or FLAC file; or an array or tensor of samples,
            perhaps by channels: integers of 16 bits, or floating-point numbers from -1 to 1.
        sample_rate: Samples per second, of arrays.

    Raises:
        ValueError: An array has another shape, or no rate.
    """
    if isinstance(audio, (str, os.PathLike)):
        return Path(audio).read_bytes()
    if isinstance(audio, (bytes, bytearray, memoryview)):
        return bytes(audio)
    import wave

    import numpy as np

    samples = to_array(audio)
    if sample_rate is None or sample_rate < 1:
        raise ValueError(f"sample_rate is {sample_rate}; samples per second were expected")
    if samples.ndim == 1:
        samples = samples[:, np.newaxis]
    if samples.ndim == 2 and samples.shape[0] < samples.shape[1]:
        samples = samples.T
    if samples.ndim != 2 or not 0 < samples.shape[1] <= _MAX_CHANNELS:
        raise ValueError(f"its shape is {samples.shape}; samples, perhaps by up to 8 channels, were expected")
    if samples.dtype.kind == "f":
        samples = np.rint(np.clip(np.nan_to_num(samples), -1, 1) * 32767)
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(samples.shape[1])
        written.setsampwidth(2)
        written.setframerate(sample_rate)
        written.writeframes(np.clip(samples, -32768, 32767).astype("<i2").tobytes())
    return file.getvalue()
