"""A Flax (linen) text tagger whose learning rate decays in a staircase: at each stair, every third step, a new optax optimiser is put into the TrainState.

Planted: the optimiser is a static field of TrainState, so a new one makes jit compile `train_step` again. Fix: one optimiser with a schedule.
"""
TRUTH = {
    "framework": "jax", "first_finding": "recompilation",
    "also_right": [], "must_name": ["train_step"], "healthy": False, "kind": "compile",
    "fix": "tx=optax.adamw(schedule) once, instead of state.replace(tx=optax.adamw(rate)) in the loop",
}
from _driver import Run

run = Run("jax", warm=3, steps=12)
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState


class Tagger(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(4000, 64)(tokens)
        x = nn.LayerNorm()(x + nn.Dense(64)(nn.gelu(nn.Dense(256)(x))))
        return nn.Dense(17)(x)


rng = np.random.default_rng(0)
model = Tagger()
schedule = optax.exponential_decay(1e-3, 3, 0.9, staircase=True)
params = model.init(jax.random.key(0), jnp.zeros((1, 40), jnp.int32))
state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(schedule))


@jax.jit
def train_step(state, tokens, tags):
    def loss_fn(params):
        logits = state.apply_fn(params, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tags).mean()
    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


for step in run.loop():
    tokens, tags = rng.integers(0, 4000, (96, 40)), rng.integers(0, 17, (96, 40))
    with run.mark(step):
        if not run.fixed and step % 3 == 0:
            rate = 1e-3 * 0.9 ** (step // 3)
            state = state.replace(tx=optax.adamw(rate))
        state, loss = train_step(state, tokens, tags)
        loss.block_until_ready()
