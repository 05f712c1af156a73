"""Training logs by every writer there is, and TensorBoard's own reading of them.

PYTHON scalars.py tf ../scalars            needs tensorflow, keras and tensorboard
PYTHON scalars.py torch ../scalars         needs torch, tensorboard and tensorboardX
PYTHON scalars.py answers ../scalars       needs tensorboard and tensorflow; after the other two
"""
import collections, fractions, glob, json, math, os, shutil, sys
os.environ.update(TF_CPP_MIN_LOG_LEVEL='2', CUDA_VISIBLE_DEVICES='-1')
WHAT, OUT = sys.argv[1:]
LOSSES = [2.5, 1.25, 0.1, 3.4028234663852886e38, -0.0, math.nan, math.inf, -math.inf]


def fresh(name):
    path = os.path.join(OUT, name)
    shutil.rmtree(path, ignore_errors=True)
    return path


def tf2(tf):
    """tf.summary: tensors, the plugin named with each; other kinds between them."""
    with tf.summary.create_file_writer(fresh('tf2')).as_default():
        for step, loss in enumerate(LOSSES):
            tf.summary.scalar('loss', loss, step=step)
            tf.summary.scalar('lr/ü', 0.1 / (step + 1), step=10**12 + step)
            if step % 4 == 0:
                tf.summary.histogram('weights', [1.0, 2.0, 3.0], step=step)
                tf.summary.image('picture', tf.zeros([1, 2, 2, 3]), step=step)
                tf.summary.text('said', 'hello', step=step)


def dtypes(tf):
    """Whoever calls tf.summary.write itself may use any type."""
    metadata = tf.compat.v1.SummaryMetadata()
    metadata.plugin_data.plugin_name = 'scalars'
    types = dict(double=[0.1, -1e300], float=[0.1], half=[0.333, 6e-8, 65504], bfloat16=[3.14, -0.5],
                 int8=[-7], uint8=[200], int16=[-30000], uint16=[60000], int32=[-2**31], uint32=[2**32 - 1],
                 int64=[-2**53, 0], uint64=[2**53], bool=[True, False])
    writer = tf.summary.create_file_writer(fresh('dtypes'))
    with writer.as_default():
        for name, values in types.items():
            for step, value in enumerate(values):
                tf.summary.write(name, tf.constant(value, dtype=getattr(tf, name + '32' if name == 'float' else name)),
                                 step=step, metadata=metadata)
    writer.close()


def v1(tf):
    """TensorFlow 1: simple values from an op, and tensors whose plugin is named only once."""
    from tensorboard.plugins.scalar import summary
    path = fresh('v1')
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value = tf.compat.v1.placeholder(tf.float32, [])
        merged = tf.compat.v1.summary.merge([
            tf.compat.v1.summary.scalar('loss', value), tf.compat.v1.summary.scalar('twice', value * 2),
            tf.compat.v1.summary.histogram('spread', tf.stack([value, 0.0]))])
        writer = tf.compat.v1.summary.FileWriter(path, session.graph)
        for step in range(4):
            writer.add_summary(session.run(merged, {value: 1 / (step + 1)}), step)
            proto = summary.pb('named_once', 0.5 ** step)
            writer.add_summary(proto.SerializeToString(), step)
        writer.add_session_log(tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START), 2)
        # after a restart, steps come again
        for step in (2, 3):
            writer.add_summary(summary.pb('named_once', -0.5 ** step).SerializeToString(), step)
        writer.close()


def keras_fit(tf):
    """model.fit with the TensorBoard callback: train and validation, and a profile of two steps."""
    import keras, numpy as np
    path = fresh('keras')
    x = np.random.default_rng(1).random((96, 4), dtype='float32')
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile('sgd', 'mse')
    board = keras.callbacks.TensorBoard(path, update_freq='batch', profile_batch=(6, 8), write_graph=True)
    model.fit(x, x[:, :2], epochs=2, batch_size=8, validation_split=0.25, verbose=0, callbacks=[board])
    (profile,) = glob.glob(path + '/train/plugins/profile/*/*.xplane.pb')
    run = os.path.dirname(profile)
    for extra in glob.glob(run + '/*'):
        if extra != profile:
            os.remove(extra)
    os.rename(profile, run + '/host.xplane.pb')
    os.rename(run, path + '/train/plugins/profile/run')


def torch():
    """PyTorch: simple values, and tensors where it is asked for the new style."""
    from torch.utils.tensorboard import SummaryWriter
    writer = SummaryWriter(fresh('torch'))
    for step, loss in enumerate(LOSSES):
        writer.add_scalar('Loss/train', loss, step)
        writer.add_scalar('new', step / 3, step, new_style=True)
        writer.add_scalar('double', step / 3, step, new_style=True, double_precision=True)
    writer.add_scalar('negative step', 1, -5)
    writer.add_scalar('at', 1, 0, walltime=1500000000.123456789)
    writer.add_scalars('both', {'a': 1.0, 'b': 2.0}, 1)
    writer.add_text('said', 'hello')
    import numpy as np
    writer.add_histogram('weights', np.array([1.0, 2.0]), 0)
    writer.add_hparams({'lr': 0.1}, {'accuracy': 0.9}, run_name='tried')
    writer.close()


def tensorboardx():
    import tensorboardX
    writer = tensorboardX.SummaryWriter(fresh('tensorboardX'))
    for step, loss in enumerate(LOSSES):
        writer.add_scalar('loss', loss, step)
    writer.close()


def answers():
    """What TensorBoard reads: by run and tag, each point with its step, time and value."""
    from tensorboard.backend.event_processing import plugin_event_accumulator as reader
    runs = {}
    for folder in sorted({os.path.dirname(it) for it in glob.glob(OUT + '/**/*tfevents*', recursive=True)}):
        log = reader.EventAccumulator(folder, size_guidance={reader.TENSORS: 0}, purge_orphaned_data=False,
                                      tensor_size_guidance=collections.defaultdict(int))
        log.Reload()
        points, others = {}, {}
        for plugin in log.ActivePlugins():
            for tag in log.PluginTagToContent(plugin):
                tensors = log.Tensors(tag) if tag in log.Tags()['tensors'] else []
                if plugin == 'scalars':
                    points[tag] = [[it.step, exact_ns(it.wall_time), number(it.tensor_proto)]
                                   for it in tensors]
                else:
                    others[plugin] = others.get(plugin, 0) + len(tensors)
        runs[os.path.relpath(folder, OUT)] = dict(scalars=points, others=others)
    with open(OUT + '/tensorboard.json', 'w') as f:
        json.dump(runs, f, indent=1, ensure_ascii=False)
        f.write('\n')


def exact_ns(seconds):
    return round(fractions.Fraction(seconds) * 10**9)


def number(tensor):
    from tensorboard.util import tensor_util
    try:
        value = tensor_util.make_ndarray(tensor)
    except TypeError:   # TensorBoard itself does not know bfloat16; TensorFlow does
        import tensorflow as tf
        from tensorflow.core.framework import tensor_pb2
        value = tf.make_ndarray(tensor_pb2.TensorProto.FromString(tensor.SerializeToString()))
    return repr(float(value.item()))   # a text: readers of JSON may round


def short_names():
    """Names hold the machine, the process and the time."""
    for path in sorted(glob.glob(OUT + '/**/*tfevents*', recursive=True)):
        folder, name = os.path.split(path)
        if name.endswith('.profile-empty'):
            os.rename(path, folder + '/events.out.tfevents.1.vm.profile-empty')
        elif not name.startswith('events.out.tfevents.1.vm'):
            os.rename(path, folder + '/events.out.tfevents.1.vm')


if WHAT == 'tf':
    import tensorflow as tf
    # a small profile
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for each in (tf2, dtypes, v1, keras_fit):
        each(tf)
elif WHAT == 'torch':
    torch()
    tensorboardx()
else:
    answers()
short_names()
