"""Secrets in output that comes in parts."""

from __future__ import annotations

import os
from pathlib import Path

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
