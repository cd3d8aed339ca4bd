"""Installs what `make distributed` needs besides: DeepSpeed, timm, Horovod, TensorFlow.

Horovod had its last release in 2023 and comes as source only. Its build sets C++14 while today's torch
wants C++17, and its CMake files predate CMake 4: the environment of the build cures both. DeepSpeed comes as
source too, and compiles what it needs in the first world, while the ranks wait, unless its build has done so.
Wheels that take minutes to build are kept outside of the virtual environment, by the versions they were built
for, and built again when they are missing.
"""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HOROVOD = "0.28.1"
DEEPSPEED = "0.19.8"
TENSORFLOW = "2.21.0"
CONSTRAINED = ("--constraint", str(Path(__file__).parent.parent / "constraints-dev.txt"))


def pip(*arguments: str, **variables: str) -> None:
    """Runs pip of this interpreter, with further environment variables."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    subprocess.run(command, check=True, env={**os.environ, "PATH": path, **variables})


def built_wheel(name: str, number: str, **variables: str) -> Path:
    """A wheel with compiled parts for this Python and torch, built unless it lies in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "resolute" / "wheels"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    kept = cache / f"{python}-torch-{version('torch').replace('+', '-')}"
    built = sorted(kept.glob(f"{name}-{number}-*.whl"))
    if built:
        return built[0]
    print(f"building {name} {number} into {kept}: minutes on two cores", flush=True)
    kept.mkdir(parents=True, exist_ok=True)
    # Older than the lock's: their builds import pkg_resources.
    pip("install", "wheel", "packaging", "setuptools<81")
    pip(
        *("wheel", "--no-build-isolation", "--no-deps", "--no-cache-dir", "--wheel-dir", str(kept)),
        # A wheel of another's has nothing compiled.
        *("--no-binary", name),
        f"{name}=={number}",
        MAKEFLAGS=f"-j{os.cpu_count() or 1}",
        **variables,
    )
    return next(kept.glob(f"{name}-{number}-*.whl"))


def horovod_wheel() -> Path:
    """Horovod with Gloo, for torch."""
    return built_wheel(
        "horovod",
        HOROVOD,
        HOROVOD_WITH_PYTORCH="1",
        HOROVOD_WITHOUT_TENSORFLOW="1",
        HOROVOD_WITHOUT_MXNET="1",
        HOROVOD_WITH_GLOO="1",
        HOROVOD_WITHOUT_MPI="1",
        CMAKE_CXX_COMPILER_LAUNCHER='sh;-c;exec "$0" "$@" -std=c++17',
        CMAKE_POLICY_VERSION_MINIMUM="3.5",
    )


def deepspeed_wheel() -> Path:
    """DeepSpeed with the operator that every world on CPUs loads: images need no compiler then."""
    return built_wheel("deepspeed", DEEPSPEED, DS_BUILD_OPS="0", DS_BUILD_SHM_COMM="1", DS_ACCELERATOR="cpu")


def install_tensorflow() -> None:
    """Installs TensorFlow and Keras 2 into a directory of their own, or torch's TensorBoard would use it."""
    folder = ("--upgrade", "--target", str(Path(sys.prefix) / "tensorflow"))
    pip("install", *CONSTRAINED, *folder, f"tensorflow-cpu=={TENSORFLOW}")
    # It asks for the build with GPUs by name.
    pip("install", "--no-deps", *folder, f"tf_keras=={TENSORFLOW}")


def main() -> None:
    """Installs all of it into the environment of this interpreter."""
    pip("install", *CONSTRAINED, str(horovod_wheel()))
    # One of the same version may be here that was built otherwise.
    pip("install", *CONSTRAINED, "--force-reinstall", "--no-deps", str(deepspeed_wheel()))
    pip("install", *CONSTRAINED, "--editable", ".[deepspeed]")
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
