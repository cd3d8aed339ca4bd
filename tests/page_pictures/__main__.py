"""Takes pictures of every view of the page, wide and narrow, light and dark. Run as ``make pictures``."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import sync_playwright
from support.services.stand_ins.alert_receivers import receivers

from page_pictures.experiments import SEARCH, train_all

_RESOLUTE = Path(sys.executable).with_name("resolute")
_PATIENCE_MS = 180_000
"""For what a view waits for: trials and services of the cluster take the same processors as the browser."""
WIDTHS = {1440: 900, 1024: 768, 390: 844}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
VIEWS = {
    "experiments": "",
    "overview": f"experiments/{SEARCH}",
    "search": f"experiments/{SEARCH}?tab=search",
    "hyperparameters": f"experiments/{SEARCH}?tab=hparams",
    "checkpoints": f"experiments/{SEARCH}?tab=checkpoints",
    "code": f"experiments/{SEARCH}?tab=code",
    "config": f"experiments/{SEARCH}?tab=config",
    "failed": "experiments/2",
    "trial": "trials/{best}",
    "logs": "trials/{best}?tab=logs",
    "runs": "trials/{best}?tab=runs",
    "why": "trials/{best}?tab=why",
    "details": "trials/{best}?tab=details",
    "media": "trials/{best}?tab=media",
    "machine": "trials/{best}?tab=machine",
    "failed-trial": "trials/2",
    "compare": "compare?trials={best},{second}",
    "differences": "compare?trials={best},{second}&tab=differences",
    "now": "now",
    "models": "models",
    "boards": "boards",
    "report": "boards?project=1&board=1",
    "create": "create",
    "tasks": "tasks",
    "tokens": "tokens",
    "queue": "cluster",
    "workspaces": "cluster?tab=workspaces",
    "storage": "cluster?tab=storage",
    "alerts": "cluster?tab=alerts",
    "users": "cluster?tab=users",
}
_REPORT = f"""## What the sweep found

**Adam** with a small dropout is best; *sgd* needs more epochs.

![Accuracy by optimizer](compare?experiments={SEARCH}&metric=validation/accuracy&group=optimizer)
"""


def main() -> None:
    """Starts a cluster, trains on it and takes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--view", action="append", choices=sorted(VIEWS), help="only this view; repeatable")
    parser.add_argument("--home", type=Path, help="keep the cluster here, and take pictures of what it has")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with _home(options.home) as home, _cluster(home) as environment:
        if not (home / "trained").exists():
            with receivers() as servers:
                train_all(home, environment, alerts_to=f"{servers.url}/slack")
        link = subprocess.run(
            [_RESOLUTE, "user", "sign-in-link"],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()
        views = {name: VIEWS[name] for name in options.view or VIEWS}
        take(options.folder, link, views, made=home / "trained")


def take(folder: Path, link: str, views: dict[str, str], *, made: Path) -> None:
    """Takes pictures of views.

    Args:
        folder: Where they go.
        link: Signs a browser in, once.
        views: Paths by names.
        made: Exists once the cluster has all that the pictures show.
    """
    root = link.partition("sign-in")[0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        page = browser.new_context(reduced_motion="reduce").new_page()
        page.set_default_timeout(_PATIENCE_MS)
        page.goto(link)
        _press_sign_in(page)
        if not made.exists():
            _make_boards(page, root)
            made.touch()
        page.goto(root + VIEWS["overview"])
        links = page.get_by_role("row").get_by_role("link")
        links.nth(1).wait_for()
        best, second = (links.nth(number).inner_text() for number in (0, 1))
        for theme in THEMES:
            for width, height in WIDTHS.items():
                page.emulate_media(color_scheme=theme)
                page.set_viewport_size({"width": width, "height": height})
                for name, path in views.items():
                    page.goto(root + path.format(best=best, second=second))
                    page.get_by_role("status").get_by_text("live", exact=True).wait_for()
                    page.wait_for_timeout(2500)  # charts are drawn when their first points have come
                    page.screenshot(path=folder / f"{name}-{width}-{theme}.png")
        browser.close()


def _press_sign_in(page: Any) -> None:
    button = page.get_by_role("button", name="Sign in")
    if button.count():
        button.click()
    page.get_by_role("navigation", name="Views").wait_for()


def _make_boards(page: Any, root: str) -> None:
    """Keeps a view as a board, and writes a report of the project."""
    dialog = page.get_by_role("dialog")
    page.goto(f"{root}compare?experiments=1,{SEARCH}")
    page.get_by_role("img", name="validation/accuracy").wait_for()
    page.keyboard.press("b")
    dialog.get_by_label("Name").fill("sweep beside the baseline")
    dialog.get_by_role("button", name="Save").click()
    dialog.wait_for(state="detached")
    page.goto(f"{root}boards")
    page.get_by_role("button", name="New report").click()
    dialog.get_by_label("Name").fill("Which optimizer?")
    dialog.get_by_label("Text, in Markdown").fill(_REPORT)
    dialog.get_by_role("button", name="Save").click()
    dialog.wait_for(state="detached")


@contextmanager
def _home(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@contextmanager
def _cluster(home: Path) -> Iterator[dict[str, str]]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("DET_", "RESOLUTE_"))}
    environment = {
        **inherited,
        "RESOLUTE_HOME": str(home / "cluster"),
        "RESOLUTE_ALERTS_ALLOWED": "127.0.0.1",
    }
    subprocess.run([_RESOLUTE, "up", "--detach", "--slots", "4"], env=environment, check=True)
    try:
        yield environment
    finally:
        subprocess.run([_RESOLUTE, "down"], env=environment, check=False)


if __name__ == "__main__":
    main()
