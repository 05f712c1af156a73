"""Deep Q-learning with prioritised replay; after each step the priorities go into a sum tree, leaf by leaf. No markers.

Planted: a Python loop over the leaves and levels of the tree, about a third of the step.
Fix: update one level of the tree at a time with NumPy.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "python-overhead",
    "also_right": [], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "update the sum tree one level at a time with NumPy instead of leaf by leaf in Python",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=40)
run.marked = False
import numpy as np
import tensorflow as tf

tf.random.set_seed(71)
rng = np.random.default_rng(71)
LEAVES, BATCH, ACTIONS = 2**16, 512, 6
states = rng.standard_normal((LEAVES, 64)).astype("float32")
actions = rng.integers(0, ACTIONS, LEAVES).astype("int32")
rewards = rng.standard_normal(LEAVES).astype("float32")
tree = np.ones(2 * LEAVES)
for node in range(LEAVES - 1, 0, -1):
    tree[node] = tree[2 * node] + tree[2 * node + 1]

sizes = (64, 192, 192, ACTIONS)
online = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in zip(sizes, sizes[1:])]
target = [tf.Variable(weight) for weight in online]


def q_values(weights, state):
    for weight in weights[:-1]:
        state = tf.nn.relu(state @ weight)
    return state @ weights[-1]


@tf.function
def train_step(state, action, reward, after):
    goal = reward + 0.97 * tf.reduce_max(q_values(target, after), axis=1)
    with tf.GradientTape() as tape:
        chosen = tf.gather(q_values(online, state), action, batch_dims=1)
        error = goal - chosen
        loss = tf.reduce_mean(tf.square(error))
    for weight, gradient in zip(online, tape.gradient(loss, online)):
        weight.assign_sub(1e-3 * gradient)
    return tf.abs(error)


def update_priorities(chosen, priorities):
    if run.fixed:
        nodes = chosen + LEAVES
        tree[nodes] = priorities
        while nodes[0] > 1:
            nodes = nodes // 2
            tree[nodes] = tree[2 * nodes] + tree[2 * nodes + 1]
    else:
        for leaf, priority in zip(chosen, priorities):
            node = int(leaf) + LEAVES
            tree[node] = priority
            while node > 1:
                node //= 2
                tree[node] = tree[2 * node] + tree[2 * node + 1]


def sample():
    # Walk down the tree for the whole batch at once.
    nodes, rest = np.ones(BATCH, np.int64), rng.random(BATCH) * tree[1]
    while nodes[0] < LEAVES:
        left = tree[2 * nodes]
        right = rest > left
        rest = np.where(right, rest - left, rest)
        nodes = 2 * nodes + right
    return nodes - LEAVES


for i in run.loop():
    chosen = sample()
    after = (chosen + 1) % LEAVES
    error = train_step(states[chosen], actions[chosen], rewards[chosen], states[after]).numpy()
    with run.part("python"):
        update_priorities(chosen, error + 1e-3)
