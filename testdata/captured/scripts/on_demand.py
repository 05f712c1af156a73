"""On-demand capture: the loop runs a profiler server, another process captures 600 ms in the middle."""
from _cap import *
import socket, subprocess
import numpy as np, tensorflow as tf
if len(sys.argv) > 2:                                  # the client
    t0 = time.time_ns()
    tf.profiler.experimental.client.trace('localhost:' + sys.argv[2], OUT, 600, options=tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0))
    print(json.dumps([t0, time.time_ns()]))
    sys.exit()
one_thread(tf)
with socket.socket() as s:
    s.bind(('localhost', 0))
    port = s.getsockname()[1]
tf.profiler.experimental.server.start(port)
r = np.random.default_rng(10)
x = tf.constant(r.standard_normal((448, 448)).astype('float32'))
w = [tf.Variable(r.standard_normal((448, 448)).astype('float32') * .03) for _ in range(6)]


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        h = x
        for v in w:
            h = tf.tanh(h @ v)
        loss = tf.reduce_mean(h * h)
    for v, g in zip(w, tape.gradient(loss, w)):
        v.assign_sub(1e-3 * g)
    return loss


for _ in range(5):
    train_step(x).numpy()
client = subprocess.Popen([sys.executable, __file__, OUT, str(port)], stdout=subprocess.PIPE, text=True)
c = StepClock()
i = left = 0
while left < 5:                                        # a few more steps after the client is done
    c.tick()
    with tf.profiler.experimental.Trace('train', step_num=i, _r=1):
        with c.part('compute'):
            train_step(x).numpy()
    i += 1
    left += client.poll() is not None
c.tick()
t0, t1 = json.loads(client.stdout.read().strip().splitlines()[-1])
# steps wholly between the client's call and its answer; the profiler's window lies inside that
lo = next(k for k, t in enumerate(c.unix) if t >= t0)
hi = max(k for k, t in enumerate(c.unix) if t <= t1)
m = c.measured(lo, hi, first_step_num=lo, client_unix_ns=[t0, t1], asked_ms=600)
m['note'] = 'Steps that start after the client\'s call and before its answer; the window lies in between and cuts its first and last step.'
finish(m)
