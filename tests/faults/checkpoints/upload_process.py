"""A trial's process that writes checkpoints to a bucket until it is killed: STORAGE as JSON, FIRST step."""

import json
import sys

from resolute import core

SIZES = {"small": 1000, "d/middle": 3_000_000, "large": 40_000_000}


def content(path: str, step: int) -> bytes:
    """What a file holds; of no two steps the same."""
    line = f"{path} of step {step}\n".encode()
    return (line * (SIZES[path] // len(line) + 1))[: SIZES[path]]


def main() -> None:
    with core.init(checkpoint_storage=json.loads(sys.argv[1])) as context:
        step = int(sys.argv[2])
        while True:
            step += 1
            with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                for name in SIZES:
                    (path / name).parent.mkdir(exist_ok=True)
                    (path / name).write_bytes(content(name, step))
            sys.stdout.write(f"{step}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
