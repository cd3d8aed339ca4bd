"""Encodes images as PNG, or takes them as encoded files."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resolute.contracts.spool.format import MAX_MEDIA_BYTES
from resolute.core.media.arrays import is_tensor, to_array

if TYPE_CHECKING:
    import numpy as np

_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
"""Of PNG, by the number of channels."""
_LEFT_NEIGHBOUR = 1
"""The filter of PNG that stores the difference to the pixel on the left."""


def image_content(image: Any) -> bytes:
    """Returns the bytes of an image file.

    Args:
        image: The path or the bytes of a PNG, JPEG, GIF or WebP file; an image of Pillow; or an array or
            tensor of height by width, perhaps with 1 to 4 channels first or last: bytes from 0 to 255, or
            floating-point numbers from 0 to 1.

    Raises:
        TypeError: It is none of these.
        ValueError: An array has another shape.
    """
    if isinstance(image, (str, os.PathLike)):
        return Path(image).read_bytes()
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if hasattr(image, "save") and hasattr(image, "getbands"):
        return _saved(image)
    return _from_pixels(_pixels(image))


def _saved(image: Any) -> bytes:
    """The file of an image of Pillow: PNG, and JPEG where that would be too large."""
    file = io.BytesIO()
    image.save(file, format="PNG")
    if len(file.getvalue()) > MAX_MEDIA_BYTES:
        file = io.BytesIO()
        image.convert("RGB").save(file, format="JPEG", quality=90)
    return file.getvalue()


def _from_pixels(pixels: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    content = _png(pixels)
    if len(content) <= MAX_MEDIA_BYTES:
        return content
    try:
        from PIL import Image
    except ImportError:
        return content
    return _saved(Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels))


def _pixels(image: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """The bytes of an array, by height, width and channel."""
    import numpy as np

    array = to_array(image)
    if array.ndim == 2:
        array = array[..., np.newaxis]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(f"its shape is {array.shape}; height by width, perhaps with channels, was expected")
    first, last = array.shape[0] in _COLOR_TYPES, array.shape[2] in _COLOR_TYPES
    if first and (is_tensor(image) or not last):
        array = np.moveaxis(array, 0, 2)
    if array.shape[2] not in _COLOR_TYPES:
        raise ValueError(f"its shape is {array.shape}; an image has from 1 to 4 channels, first or last")
    if array.dtype == np.bool_:
        array = array * np.uint8(255)
    elif array.dtype.kind == "f":
        array = np.rint(np.clip(np.nan_to_num(array), 0, 1) * 255)
    return np.ascontiguousarray(np.clip(array, 0, 255).astype(np.uint8))


def _png(pixels: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    import numpy as np

    height, width, channels = pixels.shape
    lines = np.empty((height, 1 + width * channels), dtype=np.uint8)
    lines[:, 0] = _LEFT_NEIGHBOUR
    differences = pixels.copy()
    differences[:, 1:] -= pixels[:, :-1]
    lines[:, 1:] = differences.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    # A fast level: the script waits for it.
    packed = zlib.compress(lines.tobytes(), 3)
    parts = (b"IHDR", head), (b"IDAT", packed), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
