"""Two workers of TensorFlow for a few batches; at one point the first run may wait for a pause."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf
import tf_keras

import resolute
from resolute.core import Context, DistributedContext
from resolute.keras import ResoluteCallback

EPOCHS, WAITS_AFTER = 4, 2


class Waiting(tf_keras.callbacks.Callback):  # type: ignore[misc]
    """Waits after an epoch until the platform wants the trial to stop."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        while epoch + 1 == WAITS_AFTER and not self.context.preempt.should_preempt():
            time.sleep(0.1)


def main() -> None:
    info = resolute.get_cluster_info()
    assert info is not None
    # TensorFlow wants to know of its workers before it does anything else.
    distributed, strategy = DistributedContext.from_tf_config()
    tf_keras.utils.set_random_seed(info.trial.trial_seed)
    x = tf.random.stateless_uniform((12, 2), seed=(1, 2))
    data = tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, axis=1))).batch(4)
    with strategy.scope():
        model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(2,))])
        model.compile(optimizer=tf_keras.optimizers.Adam(0.01), loss="mse")
    with resolute.core.init(distributed=distributed) as context:
        callbacks = [ResoluteCallback(context, info.latest_checkpoint, info.trial.trial_id)]
        if info.trial.hparams["waits"] and info.latest_checkpoint is None:
            callbacks.insert(0, Waiting(context))
        model.fit(data, epochs=EPOCHS, callbacks=callbacks, verbose=0)
        weights = [tf.convert_to_tensor(weight).numpy().tolist() for weight in model.weights]
        print(f"worker {distributed.rank} of {distributed.size} ends with {weights}", flush=True)


if __name__ == "__main__":
    main()
