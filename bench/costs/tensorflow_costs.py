"""What TensorFlow's ops, calls, tracings and recorded events take. Usage: tensorflow_costs.py FOLDER"""
import contextlib
import glob
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import tensorflow as tf
from tensorflow.python.profiler.internal import _pywrap_traceme
from tensorflow.tsl.profiler.protobuf import xplane_pb2
from timing import in_turns, nanoseconds, tell

FOLDER = sys.argv[1]


@contextlib.contextmanager
def profiler():
    """TensorFlow's own, with its defaults. What it wrote is removed."""
    tf.profiler.experimental.start(FOLDER)
    try:
        yield
    finally:
        tf.profiler.experimental.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)


def recorded(block, units):
    """Events that the profiler records in a unit of a block, and all durations by the beginnings of their names."""
    tf.profiler.experimental.start(FOLDER)
    for _ in range(5):
        block()
    tf.profiler.experimental.stop()
    space = xplane_pb2.XSpace()
    with open(glob.glob(FOLDER + "/**/*.xplane.pb", recursive=True)[0], "rb") as file:
        space.ParseFromString(file.read())
    shutil.rmtree(FOLDER)
    by_name, most = {}, 0
    for plane in space.planes:
        if plane.name != "/host:CPU":
            continue
        for line in plane.lines:
            most = max(most, len(line.events))
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name.partition("#")[0]
                by_name.setdefault(name, []).append(event.duration_ps / 1000)
    return most / 5 / units, by_name


def eager_ops():
    a, b = tf.ones(16), tf.ones(16)

    def block():
        for _ in range(200):
            tf.add(a, b)

    events, by_name = recorded(block, 200)
    in_turns("an eager op from Python (tf.add of 16 numbers)", block, 200, profiler, events=events)
    kernels = [ns for name, all in by_name.items() if name.startswith("KernelAndDevice") for ns in all]
    if kernels:
        tell("the kernel's run within it, as the profile says", [], kernels)

    weight = tf.Variable(tf.ones(16))

    def taped():
        with tf.GradientTape():
            it = a
            for _ in range(100):
                it = tf.multiply(it, weight)

    in_turns("an eager op that a GradientTape records", taped, 100, profiler)

    def gradient():
        with tf.GradientTape() as tape:
            it = a
            for _ in range(50):
                it = tf.sin(it * weight)
        tape.gradient(it, weight)

    in_turns("the same, its gradient included", gradient, 100, profiler)


def function_calls():
    @tf.function
    def small(it):
        return it + 1.0

    a = tf.ones(16)
    in_turns("calling a tf.function from Python, one argument", lambda: [small(a) for _ in range(50)], 50, profiler)

    variables = [tf.Variable(tf.ones(16)) for _ in range(50)]

    @tf.function
    def large(it):
        for variable in variables:
            variable.assign_add(it)

    @tf.function
    def idle(it):
        with tf.control_dependencies([tf.identity(it.handle) for it in variables]):
            return tf.identity(it)

    large(a)
    in_turns("calling a tf.function with 50 variables that does nothing", lambda: [idle(a) for _ in range(20)], 20, profiler)
    in_turns("calling a tf.function that updates 50 variables", lambda: [large(a) for _ in range(20)], 20, profiler)


def graph_ops():
    """By how much 2000 ops take longer than 1000: the call itself goes away. None of them can be folded or fused."""
    a, b, c = tf.ones(4), tf.zeros(4), tf.ones(4)

    def chain(n):
        @tf.function
        def run(it, b, c):
            for _ in range(n // 2):
                it = tf.minimum(tf.maximum(it, b), c)
            return it

        return lambda: run(a, b, c)

    def wide(n):
        rows = tf.random.uniform((n // 2, 4))

        @tf.function
        def run(rows, b):
            return tf.stack([tf.maximum(tf.sin(it), b) for it in tf.unstack(rows)])

        return lambda: run(rows, b)

    for shape, build in (("one after another", chain), ("side by side", wide)):
        few, many = build(1000), build(2000)
        few(), many()

        def extra():
            one, other = (sorted(nanoseconds(it, 1, 15)) for it in (few, many))
            return (other[7] - one[7]) / 1000

        bare, profiled = [], []
        for _ in range(12):
            bare.append(extra())
            with profiler():
                profiled.append(extra())
        tell(f"an op in TensorFlow's executor, {shape}", bare, profiled)


def events():
    record = _pywrap_traceme.TraceMe

    def block():
        for _ in range(2000):
            record("an event").Stop()

    in_turns("a TraceMe from Python", block, 2000, profiler, events=1)

    def attributes():
        for at in range(1000):
            record("an event", a=at, b=at, c=at, d="d", e="e", f=at, g=at, h=at, i=at, j=at).Stop()

    in_turns("a TraceMe with ten attributes from Python", attributes, 1000, profiler, events=1)


def stages():
    """tf.data without anything to do: each stage records an event for each element."""
    n, n_stages = 1000, 8
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    kinds = {
        "take": lambda it: it.take(n),
        "map": lambda it: it.map(lambda x: x),
        "batch": lambda it: it.batch(1),
        "shuffle": lambda it: it.shuffle(4),
        "parallel map": lambda it: it.map(lambda x: x, num_parallel_calls=2),
        "prefetch": lambda it: it.prefetch(2),
    }
    for kind, build in kinds.items():
        dataset = tf.data.Dataset.range(n)
        for _ in range(n_stages):
            dataset = build(dataset)
        dataset = dataset.batch(n).with_options(options)

        def block():
            for _ in dataset:
                pass

        cost = f"an element of a tf.data stage that does nothing ({kind})"
        in_turns(cost, block, n * n_stages, profiler, blocks=4, events=1)


def retraces():
    def step(it):
        return tf.reduce_sum(it * 2.0 + 1.0)

    def layers(it):
        for _ in range(50):
            it = tf.nn.relu(it @ tf.ones((8, 8)))
        return it

    for cost, function in (("a retrace of a function of 4 ops", step), ("a retrace of a function of 150 ops", layers)):
        rows = iter(range(2, 10_000))

        @tf.function
        def run(it):
            return function(it)

        def first():
            """A new shape, less the same shape again."""
            return run(tf.ones((next(rows), 8)))

        again = tf.ones((1, 8))
        base = sorted(nanoseconds(lambda: run(again), 1, 50))[25]
        in_turns(cost + ", the call included", first, 1, profiler, blocks=8, rounds=3)
        tell("the same call again, without a retrace", [base])


def main():
    eager_ops()
    function_calls()
    graph_ops()
    events()
    stages()
    retraces()
    sys.stdout.flush()
    os._exit(0)  # TensorFlow may hang at the interpreter's exit


main()
