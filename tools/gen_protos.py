"""Generates sdk/resolute/api and sdk/resolute/storage from protos/ with a pinned old toolchain.

The toolchain has a virtual environment of its own. Code that a new protoc generates refuses to load beside an
older protobuf runtime; code of an old one loads beside old and new runtimes alike, and the SDK must load
beside whatever a training environment pins.
"""

import os
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = [
    "grpcio-tools==1.66.2",
    "mypy-protobuf==3.6.0",
    "protobuf==5.29.5",
    "types-protobuf==5.29.1.20250403",
    "setuptools<81",
]
PACKAGES = ("api", "storage")
"""The contract, and the messages that services store: what is generated, below `resolute`."""
CACHE = (
    pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    / "resolute"
    / "protoc-1.66.2"
)


def toolchain() -> pathlib.Path:
    """Returns the interpreter of the cached tool environment, making it first if need be."""
    python = CACHE / "bin" / "python"
    stamp = CACHE / "complete"
    if not stamp.exists():
        venv.create(CACHE, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *TOOLS], check=True)
        stamp.touch()
    return python


def generate(destination: pathlib.Path) -> None:
    """Writes the generated packages below ``destination``."""
    python = toolchain()
    protos = sorted(str(path.relative_to(ROOT / "protos")) for path in (ROOT / "protos").rglob("*.proto"))
    outputs = [f"--{kind}_out={destination}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    subprocess.run(
        [python, "-m", "grpc_tools.protoc", "--proto_path=protos", *outputs, *protos],
        check=True,
        cwd=ROOT,
        env=environment,
    )
    for package in {destination / pathlib.Path(proto).parent for proto in protos}:
        for folder in (package, package.parent, package.parent.parent):
            (folder / "__init__.py").touch()


def main() -> None:
    destination = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sdk"
    for package in PACKAGES:
        for stale in (destination / "resolute" / package).rglob("*_pb2*"):
            stale.unlink()
    generate(destination.resolve())


if __name__ == "__main__":
    main()
