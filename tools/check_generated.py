"""Fails if the committed generated code is not what the contract generates."""

import filecmp
import pathlib
import sys
import tempfile

from gen_protos import PACKAGES, ROOT, generate


def differences(committed: pathlib.Path, fresh: pathlib.Path) -> list[str]:
    """Names files that are missing, left over or different."""
    names = {
        path.relative_to(base)
        for base in (committed, fresh)
        for path in base.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    return sorted(
        str(name)
        for name in names
        if not (committed / name).exists()
        or not (fresh / name).exists()
        or not filecmp.cmp(committed / name, fresh / name, shallow=False)
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        generate(pathlib.Path(scratch))
        differing = [
            name
            for package in PACKAGES
            for name in differences(
                ROOT / "sdk/resolute" / package, pathlib.Path(scratch) / "resolute" / package
            )
        ]
    if differing:
        sys.exit("generated code differs from the contract, run `make proto`: " + ", ".join(differing))


if __name__ == "__main__":
    main()
