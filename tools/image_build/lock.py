"""Locks what the images have: ``python tools/image_build/lock.py`` takes what apt and pip offer now."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from image_build import rootfs
from image_build.build import APT_SOURCES
from image_build.commands import ROOT, run

LOCKS = ROOT / "deploy/locks"
_PYTHON = "3.11"
_TRIAL = ("numpy", "pip", "scikit-learn")
"""Beside PyTorch and what the SDK wants; the data of the examples comes with scikit-learn."""
_INPUTS = {
    "pip.txt": ("pip",),
    "trial-cpu.txt": ("torch==2.13.0+cpu", *_TRIAL),
    "trial-cuda.txt": ("torch==2.13.0", *_TRIAL),
}


def main() -> None:
    """Writes the locks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--apt-sources", type=Path, default=APT_SOURCES)
    parser.add_argument(
        "--find-links",
        help="where wheels of PyTorch for CPUs are",
        default="https://download.pytorch.org/whl/torch/",
    )
    options = parser.parse_args()
    for kind in (rootfs.SERVICES, rootfs.TRIAL):
        with tempfile.TemporaryDirectory() as folder:
            made = rootfs.bootstrap(kind, Path(folder), sources=options.apt_sources)
            rootfs.write_lock(kind, rootfs.installed(made))
    for name, wanted in _INPUTS.items():
        _compile(name, wanted, find_links=options.find_links)


def _compile(name: str, wanted: tuple[str, ...], *, find_links: str) -> None:
    """Locks packages and what they need, in the versions of the services' lock where that has them."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        file.write("\n".join(wanted))
        file.flush()
        sources = [file.name] if name == "pip.txt" else [file.name, ROOT / "pyproject.toml"]
        links = ["--find-links", find_links] if "cpu" in name else []
        run(
            [
                Path(sys.executable).parent / "uv", "pip", "compile", *sources,
                "--constraint", LOCKS / "services.txt",
                "--python-version", _PYTHON, "--python-platform", "x86_64-manylinux_2_28",
                "--only-binary", ":all:",
                "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-annotate",
                *links, "--custom-compile-command", "make lock-images", "--output-file", LOCKS / name,
            ]
        )  # fmt: skip


if __name__ == "__main__":
    main()
