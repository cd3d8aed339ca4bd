"""What is wrong in a request is found before a store hears of it."""

from __future__ import annotations

import uuid

import pytest

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as requests
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError
from resolute_checkpoints.servicers.checkpoint_messages import to_commit


@pytest.mark.parametrize("path", ["../other/model.pt", "/model.pt", "a/./b", ""])
def test_uploads_to_finish_stay_within_their_checkpoint(path: str) -> None:
    request = requests.CommitCheckpointRequest(
        checkpoint_id=str(uuid.uuid4()),
        run=1,
        metadata=to_value({"steps_completed": 1}),
        multipart_uploads=[requests.CommitCheckpointRequest.MultipartUpload(path=path, upload_id="u")],
    )
    with pytest.raises(InvalidArgumentError, match=r"multipart_uploads\[0\]\.path"):
        to_commit(request)
