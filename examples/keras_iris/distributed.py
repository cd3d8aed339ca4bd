"""Flowers by two workers of TensorFlow, which average their gradients: `tf_keras`, since Keras 3 does not."""

import argparse

import tensorflow as tf
import tf_keras
from sklearn.datasets import load_iris

import resolute
from resolute.core import DistributedContext
from resolute.keras import ResoluteCallback


def main(epochs):
    info = resolute.get_cluster_info()
    # TensorFlow wants to know of its workers before it does anything else.
    distributed, strategy = DistributedContext.from_tf_config()
    tf_keras.utils.set_random_seed(info.trial.trial_seed)
    flowers = load_iris()
    data = tf.data.Dataset.from_tensor_slices((flowers.data.astype("float32"), flowers.target)).batch(50)
    with strategy.scope():
        layers = [tf_keras.layers.Dense(16, activation="relu", input_shape=(4,)), tf_keras.layers.Dense(3)]
        model = tf_keras.Sequential(layers)
        model.compile(
            optimizer=tf_keras.optimizers.Adam(info.trial.hparams["lr"]),
            loss=tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    with resolute.core.init(distributed=distributed) as context:
        callback = ResoluteCallback(
            context, info.latest_checkpoint, info.trial.trial_id, checkpoint_epochs=50
        )
        model.fit(data, epochs=epochs, callbacks=[callback], verbose=0)
        weights = [float(tf.reduce_sum(weight)) for weight in model.weights]
        print(f"worker {distributed.rank} of {distributed.size} ends with {weights}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    main(parser.parse_args().epochs)
