"""JAX: a jitted step in a bare loop with NumPy work in between; JAX's Python tracer is off."""
from _cap import *
import jax, jax.numpy as jnp, numpy as np
STEPS = 10
r = np.random.default_rng(6)
w = jnp.asarray(r.standard_normal((512, 512)).astype('float32') * .03)
raw = r.standard_normal((512, 512)).astype('float32')


@jax.jit
def update(w, x):
    g = jax.grad(lambda w: jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2))(w)
    return w - .1 * g


def prepare(i):                      # host-side preparation in NumPy
    a = np.roll(raw, i, axis=0)
    a = np.sort(np.sin(a), axis=0)[:, ::-1]
    return np.ascontiguousarray((a - a.mean(0)) / (a.std(0) + 1e-6))


for i in range(5):
    w = update(w, prepare(i)).block_until_ready()
c = StepClock()
opt = jax.profiler.ProfileOptions()
opt.python_tracer_level = 0
jax.profiler.start_trace(OUT, profiler_options=opt)
for i in range(STEPS):
    c.tick()
    with c.part('numpy'):
        x = prepare(i)
    with c.part('compute'):
        w = update(w, x).block_until_ready()
c.tick()
jax.profiler.stop_trace()
finish(c.measured(markers=0))
