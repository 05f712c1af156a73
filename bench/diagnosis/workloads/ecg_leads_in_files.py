"""Heart recordings: each of the twelve leads of each patient lies in a small file of its own, as the hospital's
export left them. A TensorFlow loop without markers.

Planted: 768 files are opened for a batch of 64. Fix: pack all into one file of fixed-length records.
Left in place, and smaller: the drift of each lead is worked out with NumPy after every step.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-small-files",
    "also_right": ["input-file-read", "input-bound", "input-cpu-starved"], "same_fix": ["input-file-read"],
    "must_name": ["ile"], "second": "python-overhead",
    "healthy": False, "kind": "input",
    "fix": "pack the leads into one file and read it with tf.data.FixedLengthRecordDataset",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=25)
import numpy as np
import tensorflow as tf

PATIENTS, LEADS, SAMPLES = 300, 12, 250
rng = np.random.default_rng(21)
signals = rng.standard_normal((PATIENTS, LEADS, SAMPLES)).astype("float32")
labels = rng.integers(0, 5, PATIENTS).astype("int32")
options = tf.data.Options()
options.deterministic = True

if run.fixed:
    packed = run.scratch / "all.bin"
    with open(packed, "wb") as file:
        for patient in range(PATIENTS):
            file.write(signals[patient].tobytes() + np.float32(labels[patient]).tobytes())

    def parse(record):
        values = tf.io.decode_raw(record, tf.float32)
        return tf.reshape(values[:-1], (LEADS, SAMPLES)), tf.cast(values[-1], tf.int32)

    data = tf.data.FixedLengthRecordDataset(str(packed), 4 * (LEADS * SAMPLES + 1)).repeat().shuffle(PATIENTS)
    data = data.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
else:
    folder = run.scratch / "leads"
    folder.mkdir()
    for patient in range(PATIENTS):
        (folder / f"{patient:04d}").mkdir()
        for lead in range(LEADS):
            signals[patient, lead].tofile(folder / f"{patient:04d}" / f"lead{lead:02d}.raw")

    def read_leads(patient, label):
        stem = tf.strings.join([str(folder), "/", tf.strings.as_string(patient, width=4, fill="0")])
        leads = [tf.io.decode_raw(tf.io.read_file(stem + f"/lead{lead:02d}.raw"), tf.float32) for lead in range(LEADS)]
        return tf.ensure_shape(tf.stack(leads), (LEADS, SAMPLES)), label

    data = tf.data.Dataset.from_tensor_slices((np.arange(PATIENTS), labels)).repeat().shuffle(PATIENTS)
    data = data.map(read_leads, num_parallel_calls=tf.data.AUTOTUNE)
data = data.batch(64, drop_remainder=True).prefetch(tf.data.AUTOTUNE).with_options(options)

kernel = tf.Variable(tf.random.normal((7, LEADS, 16), stddev=0.1))
head = tf.Variable(tf.random.normal((16, 5), stddev=0.1))


@tf.function
def train_step(signal, label):
    with tf.GradientTape() as tape:
        features = tf.nn.relu(tf.nn.conv1d(tf.transpose(signal, (0, 2, 1)), kernel, 2, "SAME"))
        logits = tf.reduce_mean(features, 1) @ head
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits))
    for variable, gradient in zip((kernel, head), tape.gradient(loss, (kernel, head))):
        variable.assign_sub(0.05 * gradient)
    return loss


batches = iter(data)
losses, drift = [], []
for step in run.loop():
    with run.part("input"):
        signal, label = next(batches)
    loss = train_step(signal, label)
    with run.part("drift"):
        drift.append(np.percentile(signal.numpy()[:, :, ::4], (5, 50, 95), axis=(0, 2)))
    if step % 10 == 0:
        losses.append(float(loss))
