"""Installs what `make distributed` needs besides: DeepSpeed, timm, Horovod, TensorFlow.

Horovod had its last release in 2023 and comes as source only. Its build sets C++14 while today's torch
wants C++17, and its CMake files predate CMake 4: the environment of the build cures both. The wheel takes
minutes to build, so it is kept outside of the virtual environment, by the versions it was built for, and
built again when it is missing.
"""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HOROVOD = "0.28.1"
TENSORFLOW = "2.21.0"
CONSTRAINED = ("--constraint", str(Path(__file__).parent.parent / "constraints-dev.txt"))


def pip(*arguments: str, **variables: str) -> None:
    """Runs pip of this interpreter, with further environment variables."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    subprocess.run(command, check=True, env={**os.environ, "PATH": path, **variables})


def horovod_wheel() -> Path:
    """The wheel of Horovod for this Python and torch, built unless it lies in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "resolute" / "wheels"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    kept = cache / f"{python}-torch-{version('torch').replace('+', '-')}"
    built = sorted(kept.glob(f"horovod-{HOROVOD}-*.whl"))
    if built:
        return built[0]
    print(f"building Horovod {HOROVOD} into {kept}: some four minutes on two cores", flush=True)
    kept.mkdir(parents=True, exist_ok=True)
    pip("install", *CONSTRAINED, "wheel", "packaging", "setuptools<81")
    pip(
        *("wheel", "--no-build-isolation", "--no-deps", "--no-cache-dir", "--wheel-dir", str(kept)),
        f"horovod=={HOROVOD}",
        HOROVOD_WITH_PYTORCH="1",
        HOROVOD_WITHOUT_TENSORFLOW="1",
        HOROVOD_WITHOUT_MXNET="1",
        HOROVOD_WITH_GLOO="1",
        HOROVOD_WITHOUT_MPI="1",
        MAKEFLAGS=f"-j{os.cpu_count() or 1}",
        CMAKE_CXX_COMPILER_LAUNCHER='sh;-c;exec "$0" "$@" -std=c++17',
        CMAKE_POLICY_VERSION_MINIMUM="3.5",
    )
    return next(kept.glob(f"horovod-{HOROVOD}-*.whl"))


def build_extensions() -> None:
    """Compiles what DeepSpeed would otherwise compile in the first world, while its ranks wait."""
    folder = Path(sys.prefix) / "torch-extensions"
    folder.mkdir(exist_ok=True)
    program = "from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder; ShareMemCommBuilder().load()"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    variables = {"TORCH_EXTENSIONS_DIR": str(folder), "DS_ACCELERATOR": "cpu", "PATH": path}
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, **variables})


def install_tensorflow() -> None:
    """Installs TensorFlow and Keras 2 into a directory of their own, or torch's TensorBoard would use it."""
    folder = ("--upgrade", "--target", str(Path(sys.prefix) / "tensorflow"))
    pip("install", *CONSTRAINED, *folder, f"tensorflow-cpu=={TENSORFLOW}")
    # It asks for the build with GPUs by name.
    pip("install", "--no-deps", *folder, f"tf_keras=={TENSORFLOW}")


def main() -> None:
    """Installs all of it into the environment of this interpreter."""
    pip("install", *CONSTRAINED, str(horovod_wheel()))
    # DeepSpeed's operators are compiled on first use; on machines without a GPU it has to be told so.
    pip("install", *CONSTRAINED, "--editable", ".[deepspeed]", DS_BUILD_OPS="0", DS_ACCELERATOR="cpu")
    build_extensions()
    # Beside a CPU build of torch, the released torchvision fails to import, and with it all that looks if
    # it is there. So it lies in a directory of its own, which only the example with timm adds to its path.
    pip(
        "install",
        "--upgrade",
        "--no-deps",
        "--target",
        str(Path(sys.prefix) / "timm"),
        "timm",
        "torchvision==0.28.*",
    )
    pip("install", *CONSTRAINED, "pillow", "huggingface-hub", "safetensors")
    install_tensorflow()


if __name__ == "__main__":
    main()
