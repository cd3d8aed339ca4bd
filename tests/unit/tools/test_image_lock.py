"""What a build of images does where Debian has other versions than the lock."""

from __future__ import annotations

import pytest
from image_build import rootfs
from image_build.commands import run


def test_a_local_build_takes_what_is_there_and_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = rootfs.read_lock(rootfs.SERVICES.lock)
    rootfs.check(rootfs.SERVICES, found, locked=True)
    assert capsys.readouterr().err == ""
    rootfs.check(rootfs.SERVICES, {**found, "dash": "99"}, locked=False)
    assert f"dash: locked {found['dash']}, found 99" in capsys.readouterr().err


def test_a_locked_build_fails_with_the_remedy() -> None:
    found = rootfs.read_lock(rootfs.SERVICES.lock)
    with pytest.raises(SystemExit, match=r"dash: .*found none[\s\S]*make lock-images"):
        rootfs.check(rootfs.SERVICES, {k: v for k, v in found.items() if k != "dash"}, locked=True)


@pytest.mark.parametrize(
    ("program", "remedy"), [("no-such-program", "tools/install_images.sh"), (".venv/none", "make setup")]
)
def test_what_is_missing_is_named_with_what_installs_it(program: str, remedy: str) -> None:
    with pytest.raises(SystemExit, match=f"{program} is not here: `{remedy}`"):
        run([program])
