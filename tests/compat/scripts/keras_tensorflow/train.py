"""The script shape of 0.38 on TensorFlow: a strategy from TF_CONFIG, tf.data, the callback."""

import tensorflow as tf
from tensorflow import keras

import determined as det
from determined.keras import DeterminedCallback


def main():
    info = det.get_cluster_info()
    distributed, strategy = det.core.DistributedContext.from_tf_config()
    with det.core.init(distributed=distributed) as core_context:
        with strategy.scope():
            model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
            model.compile(optimizer=keras.optimizers.SGD(info.trial.hparams["lr"]), loss="mse")
        data = tf.data.Dataset.from_tensor_slices((tf.ones((16, 1)), tf.zeros((16, 1)))).batch(8)
        callback = DeterminedCallback(core_context, info.latest_checkpoint, info.trial.trial_id)
        model.fit(data, epochs=2, validation_data=data, callbacks=[callback])


if __name__ == "__main__":
    main()
