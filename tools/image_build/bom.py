"""The bill of materials of an image, in CycloneDX: each package of Debian and of Python that is in it."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from image_build.commands import DATE
from image_build.rootfs import RELEASE, packages_of


def document(root: Path, *, image: str, identifier: str) -> str:
    """Describes a file system as JSON; the same one always alike.

    Args:
        root: Where the file system is mounted.
        image: Name of the image.
        identifier: Its id.
    """
    about = Component(
        name=image, type=ComponentType.CONTAINER, version=f"sha256:{identifier}", bom_ref="image"
    )
    bom = Bom(components=list(_components(root)), serial_number=uuid.uuid5(uuid.NAMESPACE_OID, identifier))
    bom.metadata.component = about
    bom.metadata.timestamp = dt.datetime.fromtimestamp(DATE, tz=dt.timezone.utc)
    bom.register_dependency(about, bom.components)
    written: str = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    return written


def _components(root: Path) -> Iterator[Component]:
    status = (root / "var/lib/dpkg/status").read_text()
    for name, version in packages_of(status).items():
        yield _component(PackageURL("deb", "debian", name, version, {"distro": RELEASE}))
    for metadata in sorted(root.glob("opt/*/lib/python3*/site-packages/*.dist-info/METADATA")):
        fields = dict(
            re.findall(r"^(Name|Version): (.+)$", metadata.read_text(errors="replace"), re.MULTILINE)
        )
        yield _component(
            PackageURL("pypi", None, fields["Name"].lower().replace("_", "-"), fields["Version"])
        )


def _component(url: PackageURL) -> Component:
    return Component(
        name=url.name, version=url.version, type=ComponentType.LIBRARY, purl=url, bom_ref=url.to_string()
    )
