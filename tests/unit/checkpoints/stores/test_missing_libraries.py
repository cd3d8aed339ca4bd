"""StoreFactory whose libraries are not installed beside the service."""

from __future__ import annotations

import re
import sys

import pytest

from resolute.contracts.distribution import install_command
from resolute.errors import FailedPreconditionError
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.domain.checkpoint import BucketStorage, Provider


@pytest.mark.parametrize(
    ("provider", "library"), [(Provider.GCS, "google.cloud"), (Provider.AZURE, "azure.storage.blob")]
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    provider: Provider, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"resolute.contracts.object_stores.{provider.value}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(FailedPreconditionError, match=re.escape(install_command(f"server,{provider.value}"))):
        StoreFactory().open(BucketStorage("weights", provider=provider))
    StoreFactory().open(BucketStorage("weights"))
