"""A GAN in the old Keras style: before each half step `trainable` is switched and the model is compiled anew, then
train_on_batch runs.

Planted: `compile` in the loop throws the train function away, so that it is traced again in every step.
Fix: compile both models once before the loop.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "retracing",
    "also_right": [], "must_name": [], "healthy": False, "kind": "compile",
    "fix": "compile discriminator and gan once before the loop",
}
from _driver import Run

run = Run("tensorflow", warm=3, steps=8)
import numpy as np
import keras
from keras import layers

BATCH = 64
rng = np.random.default_rng(1)
digits = rng.random((2000, 28, 28, 1), dtype=np.float32)
generator = keras.Sequential([
    keras.Input((32,)), layers.Dense(7 * 7 * 16, activation="relu"), layers.Reshape((7, 7, 16)),
    layers.Conv2DTranspose(16, 4, strides=2, padding="same", activation="relu"),
    layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="sigmoid")])
discriminator = keras.Sequential([
    keras.Input((28, 28, 1)), layers.Conv2D(16, 4, strides=2, padding="same"), layers.LeakyReLU(),
    layers.Conv2D(32, 4, strides=2, padding="same"), layers.LeakyReLU(), layers.Flatten(),
    layers.Dense(1, activation="sigmoid")])
d_optimizer, g_optimizer = keras.optimizers.SGD(2e-3, momentum=0.5), keras.optimizers.SGD(2e-3, momentum=0.5)
discriminator.compile(d_optimizer, "binary_crossentropy")
discriminator.train_on_batch(digits[:2 * BATCH], np.ones((2 * BATCH, 1)))
discriminator.trainable = False
gan = keras.Sequential([keras.Input((32,)), generator, discriminator])
gan.compile(g_optimizer, "binary_crossentropy")
targets = np.concatenate([np.ones((BATCH, 1)), np.zeros((BATCH, 1))]).astype("float32")

for step in run.loop():
    with run.mark(step):
        noise = rng.standard_normal((BATCH, 32)).astype("float32")
        fakes = generator.predict_on_batch(noise)
        real = digits[rng.integers(0, 2000, BATCH)]
        discriminator.trainable = True
        if not run.fixed:
            discriminator.compile(d_optimizer, "binary_crossentropy")
        discriminator.train_on_batch(np.concatenate([real, fakes]), targets)
        discriminator.trainable = False
        if not run.fixed:
            gan.compile(g_optimizer, "binary_crossentropy")
        gan.train_on_batch(noise, np.ones((BATCH, 1), np.float32))
