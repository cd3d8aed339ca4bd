"""Secrets in output that comes in parts."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from resolute.contracts.run.directory import RunDirectory
from resolute.runtime.redaction import Secrets, StreamRedactor
from resolute_launch.ranks.secrets import RankSecrets

TOKEN = "eyJh.eyJz.c2ln"
KEY = "eyJk"


@pytest.mark.parametrize("cut", range(1, len(TOKEN)))
def test_a_secret_is_masked_wherever_it_is_parted(cut: int) -> None:
    masking = StreamRedactor(Secrets(TOKEN, KEY))
    text = f"before {TOKEN} after".encode()
    at = len("before ") + cut
    assert masking.feed(text[:at]) + masking.feed(text[at:]) + masking.finish() == b"before *** after"


def test_no_rest_is_left_of_a_secret_that_begins_with_another() -> None:
    secrets = Secrets("hush", "hush-hush")
    assert secrets.mask(b"hush-hush") == b"***"
    secrets.renew("hush-hush-hush")
    assert secrets.mask(b"hush-hush-hush hush") == b"*** ***"


def test_a_secret_that_comes_byte_by_byte_is_masked() -> None:
    masking = StreamRedactor(Secrets(TOKEN, KEY))
    text = f"eyJ {TOKEN}{KEY}{TOKEN[:6]}e{KEY} ey".encode()
    shown = b"".join(masking.feed(text[at : at + 1]) for at in range(len(text)))
    assert shown + masking.finish() == b"eyJ ******" + TOKEN[:6].encode() + b"e*** ey"


def test_only_what_may_be_a_secret_waits() -> None:
    masking = StreamRedactor(Secrets(TOKEN))
    assert masking.feed(b"whole line\n") == b"whole line\n"
    assert masking.feed(b"no end") == b"no end"
    assert masking.feed(b" but ey") == b" but "
    assert masking.feed(b"es\n") == b"eyes\n"
    assert masking.feed(TOKEN[:-1].encode()) == b""
    assert masking.finish() == TOKEN[:-1].encode()
    assert masking.finish() == b""


def test_the_first_secrets_stay_and_of_renewed_tokens_the_latest() -> None:
    secrets = Secrets(TOKEN, "")
    for number in range(20):
        secrets.renew(f"token-{number:02}")
    secrets.add(KEY)
    secrets.renew("")
    assert secrets.mask(f"{TOKEN} {KEY} token-19 token-12".encode()) == b"*** *** *** ***"
    # For each line of a run of months, thousands of them would be looked for.
    assert secrets.mask(b"token-03") == b"token-03"


def test_a_rank_knows_its_environment_and_the_token_of_the_moment(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    secrets = RankSecrets({"DET_SESSION_TOKEN": TOKEN, "RESOLUTE_COLLECTIVE_KEY": "key"}, run)
    secrets.refresh_token()
    assert secrets.known.mask(f"{TOKEN} key second".encode()) == b"*** *** second"
    run.token_file.write_text("second\n")
    secrets.refresh_token()
    run.token_file.write_text("third\n")
    os.utime(run.token_file, ns=(1, 1))
    secrets.refresh_token()
    assert secrets.known.mask(b"second third") == b"*** ***"
    RankSecrets({}, None).refresh_token()


GIVEN = 's3cr3t/token+of=a "hub"\nsecond line of it\n'
PRINTED = {
    "as it is": GIVEN,
    "one line": "second line of it",
    "in JSON": json.dumps({"token": GIVEN}),
    "in a URL": f"https://user:{quote(GIVEN, safe='')}@hub/",
    "in a form": urlencode({"token": GIVEN}),
    "as Python shows it": repr({"token": GIVEN}),
    "in base64": base64.b64encode(GIVEN.encode()).decode(),
    "in base64 of URLs": base64.urlsafe_b64encode(GIVEN.encode()).decode(),
    **{
        f"in a header after {len(user)} letters": base64.b64encode(f"{user}:{GIVEN}".encode()).decode()
        for user in ("u", "us", "use")
    },
}


@pytest.mark.parametrize("form", sorted(PRINTED))
def test_a_given_secret_is_masked_in_the_forms_in_which_programs_print_it(form: str) -> None:
    secrets = Secrets()
    secrets.add_printed(GIVEN)
    shown = secrets.mask(f"before {PRINTED[form]} after".encode()).decode()
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert "***" in shown
    for part in ("s3cr3t", "second", "token+of", base64.b64encode(GIVEN.encode()).decode()[8:20]):
        assert part not in shown


def test_a_rank_and_what_a_lost_supervisor_leaves_know_the_given_secrets(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.write_secrets({"hub": GIVEN, "key": "another one"})
    assert (run.secrets / "hub").stat().st_mode & 0o777 == 0o600
    known = RankSecrets({}, run).known
    assert known.mask(b"second line of it, another one") == b"***, ***"
    # What a script puts there does not switch off the others.
    (run.secrets / "folder").mkdir()
    os.mkfifo(run.secrets / "pipe")
    (run.secrets / "picture").write_bytes(b"\xff\xd8")
    assert sorted(run.read_secrets()) == sorted((GIVEN, "another one"))
    run.remove_secrets()
    assert run.read_secrets() == ()
    run.remove_secrets()
