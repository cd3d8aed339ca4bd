"""``resolute storage doctor``."""

from __future__ import annotations

import click

from resolute.cli.display.output import print_json
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import BucketStorage, DirectoryStorage


@click.command()
@click.option(
    "--directory", metavar="PATH", help="Test this directory, as for the types shared_fs and directory."
)
@click.option("--bucket", metavar="NAME", help="Test this bucket or Azure container.")
@click.option(
    "--type",
    "kind",
    type=click.Choice(["s3", "gcs", "azure"]),
    default="s3",
    help="Type of the bucket [s3].",
)
@click.option("--prefix", default="", help="Prefix of the object names.")
@click.option("--endpoint-url", default="", metavar="URL", help="Address of the store, or of the account.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def doctor(
    ctx: click.Context,
    directory: str | None,
    bucket: str | None,
    kind: str,
    prefix: str,
    endpoint_url: str,
    as_json: bool,
) -> None:
    """Let the cluster write, read and delete a file in a store, and report what is wrong with the store.

    Exits with 1 when something is.
    """
    if (directory is None) == (bucket is None):
        raise click.UsageError("Name either a --directory or a --bucket.")
    registry = ctx.ensure_object(Settings).services().checkpoints
    if directory is not None:
        findings = registry.examine(DirectoryStorage(directory))
    else:
        findings = registry.examine(BucketStorage(bucket or "", prefix.strip("/"), endpoint_url, kind))
    if as_json:
        print_json(findings)
    else:
        for finding in findings:
            mark = click.style("ok    ", fg="green") if finding.passed else click.style("failed", fg="red")
            click.echo(f"{mark}  {finding.step}: {finding.detail}")
    if not all(finding.passed for finding in findings):
        ctx.exit(1)
