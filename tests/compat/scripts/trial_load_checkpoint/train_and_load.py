"""Trains, then downloads the best checkpoint by the client and loads the trial from it."""

import determined as det
from determined import pytorch
from determined.experimental import client
from model import Tiny

if __name__ == "__main__":
    info = det.get_cluster_info()
    with pytorch.init(hparams=info.trial.hparams) as context:
        trainer = pytorch.Trainer(Tiny(context), context)
        trainer.fit(checkpoint_period=pytorch.Batch(2), latest_checkpoint=info.latest_checkpoint)
    trial = client.get_trial(info.trial.trial_id)
    (checkpoint, *_) = trial.list_checkpoints(
        sort_by=client.CheckpointSortBy.BATCH_NUMBER, order_by=client.OrderBy.DESC
    )
    assert checkpoint.metadata["steps_completed"] == 4
    path = checkpoint.download("downloaded")
    loaded = pytorch.load_trial_from_checkpoint_path(path, torch_load_kwargs={"map_location": "cpu"})
    assert type(loaded).__name__ == "Tiny"
    assert loaded.model.weight.shape == (1, 2)
    with det.import_from_path(path + "/code"):
        import model  # noqa: F401
