"""Classifies support tickets in a GradientTape loop. A collator in Python, called through tf.numpy_function, looks up
the words and pads a batch of tickets; tickets are of very different length, so its time varies.

Planted: word look-up and padding in Python inside the pipeline. Fix: the same with tf.strings.split and a
tf.lookup table. Left in place, and smaller: every ticket and its outcome are written to a log as JSON after each step.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-python",
    "also_right": ["input-bound"], "same_fix": ["input-bound"], "must_name": [],
    "second": "python-overhead", "healthy": False, "kind": "input",
    "fix": "tf.strings.split and tf.lookup.StaticHashTable in the map instead of tf.numpy_function(collate)",
}
import json

from _driver import Run

run = Run("tensorflow", warm=6, steps=30)
import numpy as np
import tensorflow as tf

WIDTH, BATCH = 120, 64
rng = np.random.default_rng(11)
vocabulary = [f"w{n}" for n in range(5000)]
index = {word: n + 1 for n, word in enumerate(vocabulary)}
lengths = np.clip(rng.lognormal(5.1, 0.8, 2000).astype(int), 5, 1500)
tickets = [" ".join(vocabulary[n] for n in rng.integers(0, 5000, length)) for length in lengths]
queues = rng.integers(0, 6, 2000).astype("int32")


def collate(texts):
    batch = np.zeros((len(texts), WIDTH), np.int32)
    for row, text in enumerate(texts):
        tokens = []
        for word in text.decode("utf8").lower().split(" "):
            word = word.strip(".,!?").replace("'", "")
            for ending in ("ing", "ed", "s"):
                if word.endswith(ending):
                    word = word[:-len(ending)]
                    break
            token = index.get(word, 0)
            if token:
                tokens.append(token)
        batch[row, :min(WIDTH, len(tokens))] = tokens[:WIDTH]
    return batch


table = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(vocabulary, tf.range(1, 5001)), default_value=0)


def collate_graph(texts):
    texts = tf.strings.lower(tf.strings.substr(texts, 0, 8 * WIDTH))
    texts = tf.strings.regex_replace(texts, r"(ing|ed|s)?[.,!?]*( |$)", " ")
    words = tf.strings.split(texts, " ")[:, :WIDTH]
    return tf.ragged.map_flat_values(table.lookup, words).to_tensor(shape=(None, WIDTH))


def in_python(texts, queue):
    tokens = tf.numpy_function(collate, [texts], tf.int32)
    return tf.ensure_shape(tokens, (None, WIDTH)), queue


data = tf.data.Dataset.from_tensor_slices((tickets, queues)).repeat().shuffle(2000).batch(BATCH, drop_remainder=True)
if run.fixed:
    data = data.map(lambda texts, queue: (collate_graph(texts), queue), num_parallel_calls=tf.data.AUTOTUNE)
else:
    data = data.map(in_python, num_parallel_calls=tf.data.AUTOTUNE)
data = data.prefetch(tf.data.AUTOTUNE)

embedding = tf.Variable(tf.random.normal((5001, 16), stddev=0.1))
hidden_w = tf.Variable(tf.random.normal((16, 64), stddev=0.1))
out_w = tf.Variable(tf.random.normal((64, 6), stddev=0.1))


@tf.function(jit_compile=False)
def train_step(tokens, queue):
    with tf.GradientTape() as tape:
        words = tf.gather(embedding, tokens)
        pooled = tf.reduce_mean(words, 1)
        logits = tf.nn.relu(pooled @ hidden_w) @ out_w
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(queue, logits))
    slices, g_hidden, g_out = tape.gradient(loss, [embedding, hidden_w, out_w])
    embedding.scatter_sub(tf.IndexedSlices(0.1 * slices.values, slices.indices))
    hidden_w.assign_sub(0.1 * g_hidden)
    out_w.assign_sub(0.1 * g_out)
    return loss, tf.argmax(logits, -1)


batches = iter(data)
log = open(run.scratch / "tickets.jsonl", "w")
for step in run.loop():
    with run.mark(step):
        with run.part("input"):
            tokens, queue = next(batches)
        loss, guess = train_step(tokens, queue)
        with run.part("log"):
            for words, given, meant in zip(tokens.numpy(), guess.numpy(), queue.numpy()):
                log.write(json.dumps({"words": words.tolist(), "given": int(given), "meant": int(meant)}) + "\n")
