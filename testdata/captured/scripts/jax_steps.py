"""JAX: a jitted train step inside StepTraceAnnotation; nearly all compute. Default profiler options."""
from _cap import *
import jax, jax.numpy as jnp, numpy as np
STEPS = 8
r = np.random.default_rng(5)
p = [jnp.asarray(r.standard_normal(s).astype('float32') * .03) for s in ((320, 768), (768, 768), (768, 12))]
x = jnp.asarray(r.standard_normal((384, 320)).astype('float32'))
y = jnp.asarray(r.standard_normal((384, 12)).astype('float32'))


def loss(p, x, y):
    h = jnp.tanh(x @ p[0])
    h = jnp.tanh(h @ p[1])
    return jnp.mean((h @ p[2] - y) ** 2)


@jax.jit
def train_step(p, x, y):
    l, g = jax.value_and_grad(loss)(p, x, y)
    return [a - .05 * b for a, b in zip(p, g)], l


for _ in range(5):
    p, l = train_step(p, x, y)
    l.block_until_ready()
c = StepClock()
jax.profiler.start_trace(OUT)
for i in range(STEPS):
    c.tick()
    with jax.profiler.StepTraceAnnotation('train', step_num=i):
        with c.part('compute'):
            p, l = train_step(p, x, y)
            l.block_until_ready()
c.tick()
jax.profiler.stop_trace()
finish(c.measured(markers=STEPS))
