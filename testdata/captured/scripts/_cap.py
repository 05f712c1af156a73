"""Shared by the capture scripts: an independent clock, and tidying of the profile folder.

Every script is called as `python <name>.py OUT`; it profiles a few warm steps into OUT and
writes OUT/measured.json, whose numbers come from time.perf_counter only, never from the profile.
"""
import contextlib, glob, json, os, shutil, statistics, sys, time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')
OUT = sys.argv[1] if len(sys.argv) > 1 else '/tmp/capture'
NAME = os.path.splitext(os.path.basename(sys.argv[0]))[0]


class StepClock:
    """tick() at the start of each step and once after the last; part(name) inside a step."""

    def __init__(self):
        self.starts, self.unix, self.parts = [], [], []

    def tick(self):
        self.unix.append(time.time_ns())
        self.starts.append(time.perf_counter())
        self.parts.append({})

    @contextlib.contextmanager
    def part(self, name):
        t = time.perf_counter()
        try:
            yield
        finally:
            if self.parts:
                d = self.parts[-1]
                d[name] = d.get(name, 0.0) + time.perf_counter() - t

    def measured(self, lo=0, hi=None, **extra):
        """The record of steps lo..hi (hi exclusive), each from its start to the next one's start."""
        n = len(self.starts) - 1
        hi = n if hi is None else hi
        ms = [(self.starts[i + 1] - self.starts[i]) * 1e3 for i in range(lo, hi)]
        total = sum(ms)
        parts = {}
        for d in self.parts[lo:hi]:
            for k, v in d.items():
                parts[k] = parts.get(k, 0.0) + v * 1e3
        frac = {k: round(v / total, 4) for k, v in parts.items()}
        return dict(name=NAME, steps=len(ms), step_ms=[round(v, 3) for v in ms],
                    median_step_ms=round(statistics.median(ms), 3), fraction=frac,
                    step_start_unix_ns=self.unix[lo:hi + 1], **extra)


def tidy(out=OUT):
    """Keep only the .xplane.pb, as .../plugins/profile/run/host.xplane.pb."""
    (pb,) = glob.glob(out + '/**/*.xplane.pb', recursive=True)
    run = os.path.dirname(pb)
    keep = os.path.join(os.path.dirname(run), 'run', 'host.xplane.pb')
    with open(pb, 'rb') as f:
        data = f.read()
    for p in os.listdir(out):
        q = os.path.join(out, p)
        shutil.rmtree(q) if os.path.isdir(q) else os.remove(q)
    os.makedirs(os.path.dirname(keep))
    with open(keep, 'wb') as f:
        f.write(data)


def finish(measured, out=OUT):
    tidy(out)
    with open(out + '/measured.json', 'w') as f:
        json.dump(measured, f, indent=1)
        f.write('\n')
    sys.stdout.flush()
    os._exit(0)      # live generator / server threads can block a normal exit


def one_thread(tf, intra=1, inter=1):
    tf.config.threading.set_intra_op_parallelism_threads(intra)
    tf.config.threading.set_inter_op_parallelism_threads(inter)


def start(tf):
    tf.profiler.experimental.start(OUT, options=tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=0))


def python_work(n):
    """Pure interpreter work, as bookkeeping code does it."""
    words = {}
    for i in range(n):
        k = (i * 7919) % 101
        words[k] = words.get(k, 0) + (i ^ k)
    return words
