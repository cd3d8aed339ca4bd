"""Names functions, classes, methods and imports that nothing uses: ``python tools/unused_code.py``.

What only tests use counts as unused. Names of the public API have users elsewhere, and so have hooks, which
libraries call by their names: those are not asked about. What remains and must stay is in ``KEPT``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parent.parent
_USERS = (
    "sdk",
    "launchers",
    "engines",
    "services",
    "compat",
    "tools",
    "benchmarks",
    "examples",
    "tests/page_pictures",
)
_GENERATED = ("sdk/resolute/api", "sdk/resolute/storage")
_KINDS = {"function", "class", "method", "property", "import"}
_PUBLIC = re.compile(
    r"sdk/resolute/(client/(__init__|objects/|schema/)|core/|errors|horovod|info|keras/|lightning/|pytorch/|runtime/"
    r"|search_space|searcher/|tensorboard/|transformers/|trial_errors|trials/|accelerate)|compat/|tools/determined_names"
    r"|benchmarks/|examples/|tests/|.*/migrations/versions/|sdk/resolute/cli/starters/"
)
"""What users of the SDK import, and files that frameworks load by themselves."""
_HOOKS = re.compile(r"on_\w+|intercept_\w+|[A-Z]\w*")
"""Methods that callbacks, interceptors and servicers of gRPC have by their base class or contract."""
_DECORATORS = ["@*command*", "@*group*", "@*validator*", "@compiles*", "@*listens_for*", "@*fixture*"]
KEPT = {
    "capture_signals": "uvicorn calls it",
    "startup": "uvicorn calls it",
    "_repr_html_": "notebooks call it",
    "add_registered_method_handlers": "code that gRPC generates calls it",
    "format_commands": "click calls it",
    "handle_error": "socketserver calls it",
    "log_message": "http.server calls it",
    "verify_request": "socketserver calls it",
    "wait_until_idle": "tests wait for snapshots, and have nothing else to wait for",
}
"""Names with the reason why they stay."""


def main() -> None:
    # Types of stubs stand in strings: only annotations and casts name them.
    search = Vulture(ignore_names=["*AsyncStub"], ignore_decorators=_DECORATORS)
    search.scavenge(
        [ROOT / folder for folder in _USERS], exclude=[f"{ROOT / folder}/*" for folder in _GENERATED]
    )
    unused, kept = [], set()
    for item in search.get_unused_code(min_confidence=60):
        file = str(Path(item.filename).relative_to(ROOT))
        kept |= {item.name} & KEPT.keys()
        hook = item.typ == "method" and _HOOKS.fullmatch(item.name)
        if item.typ in _KINDS and item.name not in KEPT and not _PUBLIC.match(file) and not hook:
            unused.append(f"{file}:{item.first_lineno}: nothing uses the {item.typ} {item.name}")
    unused += [f"tools/unused_code.py: KEPT has {name}, which is used or gone" for name in KEPT.keys() - kept]
    if unused:
        sys.exit(
            "\n".join([*unused, "remove what is dead; what must stay goes into KEPT of tools/unused_code.py"])
        )


if __name__ == "__main__":
    main()
