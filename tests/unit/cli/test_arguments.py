"""What people write for numbers of objects and of slots."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from resolute.cli.imports.determined import determined
from resolute.cli.options.identifiers import EXPERIMENTS, keys_argument
from resolute.errors import InvalidArgumentError
from resolute_embedded.cli import up


@click.command()
@keys_argument("experiment_ids", metavar="ID[,ID...]", type_=EXPERIMENTS)
def show(experiment_ids: tuple[str, ...]) -> None:
    click.echo("|".join(experiment_ids))


@pytest.mark.parametrize("given", [["5,10,11"], ["5", "10", "11"], ["5,", "10,", "11"], ["5", "10,11", "5"]])
def test_several_objects_are_separated_by_commas_or_spaces(given: list[str]) -> None:
    assert CliRunner().invoke(show, given).output == "5|10|11\n"


def test_what_is_no_number_is_named() -> None:
    result = CliRunner().invoke(show, ["5", "x"])
    assert result.exit_code == 2
    assert "'x' is not the number or UUID of an experiment; `resolute experiment list`" in result.output


def test_slots_are_a_number() -> None:
    result = CliRunner().invoke(up, ["--slots", "gpu"])
    assert result.exit_code == 2
    assert "'gpu' is not a number; without --slots they are the GPUs, or else the cores." in result.output


def test_a_password_in_another_encoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes("secret".encode("utf-16"))
    result = CliRunner().invoke(determined, ["http://127.0.0.1:1", "--password-file", str(file)])
    assert isinstance(result.exception, InvalidArgumentError)
    assert f"the password in {file} is not text in UTF-8" in str(result.exception)
