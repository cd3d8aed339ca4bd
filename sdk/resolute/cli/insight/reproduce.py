"""``resolute reproduce``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from resolute.cli.display.output import json_option, print_json
from resolute.cli.options.identifiers import TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.reproduction.comparison import ComparedFile, WeightComparison, compare_weights
from resolute.client.reproduction.directory import SCRIPT, write_directory
from resolute.client.reproduction.recipe import Recipe, read_recipe
from resolute.client.reproduction.running import changed_packages, run

_SHOWN = 5


@click.command()
@click.argument("trial_id", metavar="ID", type=TRIAL)
@click.option(
    "-o",
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Target directory [reproduction-ID].",
)
@click.option("--run", "run_it", is_flag=True, help="Run it here, and compare the weights with the trial's.")
@json_option
@click.pass_context
def reproduce(
    ctx: click.Context, trial_id: str, output_dir: Path | None, run_it: bool, as_json: bool
) -> None:
    """Write a directory in which trial ID runs again without its cluster.

    It has the code, the config, the info with hyperparameters, seed and lengths, a lock of the recorded
    packages, and the command. With --run the command is run with this interpreter, and the exit code is 1
    unless the weights equal those of the trial bit for bit.
    """
    services = ctx.ensure_object(Settings).services()
    recipe = read_recipe(services, trial_id)
    directory = output_dir or Path(f"reproduction-{recipe.trial.id}")
    write_directory(recipe, directory, services)
    if not run_it:
        if as_json:
            print_json({"directory": str(directory), "command": f"bash {directory / SCRIPT}"})
        else:
            click.echo(f"{directory} is written; `bash {directory / SCRIPT}` runs the trial")
        return
    for line in _differences(recipe):
        click.echo(line, err=True)
    run(directory, output=sys.stderr.fileno() if as_json else None)
    comparison = compare_weights(recipe, directory, services.checkpoints)
    if as_json:
        print_json({"directory": str(directory), "equal": comparison.equal, "comparison": comparison})
    else:
        _show(recipe, comparison)
    if not comparison.equal:
        ctx.exit(1)


def _differences(recipe: Recipe) -> list[str]:
    """Says what may make another result."""
    if recipe.environment is None:
        return ["the packages of the trial were not recorded, so they are not compared"]
    changed = changed_packages(recipe.environment)
    warnings = [f"warning: packages differ from the trial's: {_listed(changed)}"] if changed else []
    if recipe.gpu:
        warnings.append("warning: the trial ran on GPUs, which do not always repeat a result bit for bit")
    if len(recipe.trial.runs) > 1:
        warnings.append(f"the trial had {len(recipe.trial.runs)} runs; here it runs without a break")
    return warnings


def _show(recipe: Recipe, comparison: WeightComparison) -> None:
    for file in comparison.files:
        click.echo(f"  {file.path}: {_result(file)}")
    word = "equal" if comparison.equal else "different"
    click.echo(
        f"trial {recipe.trial.id} and its reproduction have {word} weights after {comparison.steps} steps "
        f"(checkpoint {comparison.checkpoint})"
    )


def _result(file: ComparedFile) -> str:
    if file.equal:
        return "equal"
    if file.differing:
        return f"differs in {_listed(file.differing)}"
    return "differs" if file.weights else "differs; it holds no weights"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
