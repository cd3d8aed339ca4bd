"""``resolute trial support-bundle``."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from resolute.cli.display.log_lines import format_line
from resolute.cli.display.output import to_plain
from resolute.cli.options.identifiers import TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.remote.reports.logs import LineFilter
from resolute.client.schema.records import TrialRecord
from resolute.client.services import Services
from resolute.contracts.clock import SYSTEM_CLOCK


@click.command(name="support-bundle")
@click.argument("trial_id", type=TRIAL)
@click.option(
    "-o",
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Target directory [current directory].",
)
@click.pass_obj
def support_bundle(settings: Settings, trial_id: str, output_dir: Path) -> None:
    """Write an archive with the log, the metrics, the config and the state of a trial, to send to others."""
    services = settings.services()
    trial = services.trials.get(trial_id)
    name = f"trial_{trial.id}_support_bundle"
    output_dir.mkdir(parents=True, exist_ok=True)
    target = output_dir / f"{name}.tar.gz"
    with tarfile.open(target, "w:gz") as archive:
        for file, content in _files(services, trial):
            data = content.encode()
            member = tarfile.TarInfo(f"{name}/{file}")
            member.size, member.mtime = len(data), int(SYSTEM_CLOCK.time())
            archive.addfile(member, io.BytesIO(data))
    click.echo(target)


def _files(services: Services, trial: TrialRecord) -> Iterator[tuple[str, str]]:
    experiment = services.experiments.get(trial.experiment_uuid)
    yield "trial.json", _json(trial)
    yield "experiment.json", _json(experiment)
    yield "metrics.json", _json(list(services.metrics.reports(trial)))
    yield "checkpoints.json", _json(list(services.checkpoints.of_trial(trial.uuid)))
    yield "cluster.json", _json(services.cluster.get())
    lines = services.logs.read(trial.uuid, LineFilter())
    yield "log.txt", "".join(f"{format_line(line)}\n" for line in lines)


def _json(value: Any) -> str:
    return json.dumps(to_plain(value), indent=2, ensure_ascii=False)
