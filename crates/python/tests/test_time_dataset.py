"""Timing a dataset, by a clock that only the dataset turns: no test waits or depends on speed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import stroboscope
from stroboscope._time_dataset import _drain, _n_examples


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def drain(gaps, seconds=10.0, warmup=0.0, element=None):
    """Drain a dataset whose elements come after these times, in seconds."""
    clock = Clock()
    taken = []

    def dataset():
        for gap in gaps:
            clock.now += gap
            taken.append(gap)
            yield element

    return _drain(dataset(), seconds, warmup, clock), len(taken)


def array(*shape):
    return SimpleNamespace(shape=shape)


def test_a_steady_dataset_until_time_is_up():
    timing, n = drain([0.5] * 1000, seconds=10.0, warmup=2.0, element=array(64, 3))
    assert timing.elements == 20
    assert timing.elements_per_s == pytest.approx(2.0)
    assert timing.examples_per_s == pytest.approx(128.0)
    assert timing.batch_size == 64
    assert timing.median_ms == pytest.approx(500.0)
    assert timing.first_s == pytest.approx(0.5)
    assert (timing.warm, timing.ended) == (True, False)
    # The first, four of the warm-up, those counted, and not one more.
    assert timing.warmup_elements == 5
    assert n == 25


def test_what_was_fetched_ahead_is_not_counted():
    # Eight elements lie in the buffer; then one comes every second.
    timing, _ = drain([3.0] + [0.0] * 8 + [1.0] * 100, seconds=20.0, warmup=4.0)
    assert timing.elements_per_s == pytest.approx(1.0)
    assert timing.median_ms == pytest.approx(1000.0)
    assert timing.first_s == pytest.approx(3.0)
    assert timing.warmup_elements == 13


def test_a_dataset_that_ends_after_the_warm_up():
    timing, n = drain([0.5] * 12, seconds=100.0, warmup=2.0)
    assert (timing.warm, timing.ended) == (True, True)
    assert timing.elements == 7
    assert timing.elements_per_s == pytest.approx(2.0)
    assert n == 12


def test_a_dataset_that_ends_within_the_warm_up_says_so():
    timing, _ = drain([0.5] * 3, warmup=60.0)
    assert (timing.warm, timing.ended) == (False, True)
    assert (timing.elements, timing.warmup_elements) == (2, 1)
    assert timing.elements_per_s == pytest.approx(2.0)
    assert "ended during the warm-up" in str(timing)


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_can_be_said_of_too_few(n):
    timing, _ = drain([0.5] * n)
    assert timing.elements == 0
    assert timing.elements_per_s is None
    assert timing.examples_per_s is None
    assert timing.median_ms is None
    assert timing.first_s == (pytest.approx(0.5) if n else None)
    assert "too few" in repr(timing)


def test_a_smaller_last_batch_counts_as_what_it_is():
    clock = Clock()

    def dataset():
        for size in (32, 32, 32, 8):
            clock.now += 1.0
            yield {"image": array(size, 28, 28), "label": array(size)}

    timing = _drain(dataset(), 60.0, 0.0, clock)
    assert timing.examples == 72
    assert timing.batch_size == 32
    assert timing.examples_per_s == pytest.approx(24.0)


def test_spread_is_that_of_the_middle_nine_tenths():
    timing, _ = drain([1.0] + [0.1] * 95 + [2.0] * 5, seconds=1e9)
    assert timing.median_ms == pytest.approx(100.0)
    assert timing.p05_ms == pytest.approx(100.0)
    assert 100.0 < timing.p95_ms < 2000.0
    few, _ = drain([1.0] * 10)
    assert few.p05_ms is None and few.p95_ms is None


@pytest.mark.parametrize(
    ("element", "n"),
    [
        (array(16, 4), 16),
        ((array(8, 2), array(8)), 8),
        ({"names": ["a", "b"], "x": array(2, 5)}, 2),
        ([({"deep": array(3)},)], 3),
        (array(), None),
        (7, None),
        ("text", None),
        ([], None),
        ({}, None),
        (SimpleNamespace(shape=(None, 3)), None),
        (SimpleNamespace(shape=None), None),
        (list(range(100_000)), None),
    ],
)
def test_examples_are_counted_by_the_first_array(element, n):
    assert _n_examples(element) == n


def test_anything_that_can_be_iterated_over_is_a_dataset():
    assert stroboscope.time_dataset([1, 2, 3], warmup=0).elements == 2
    assert stroboscope.time_dataset((it for it in range(5)), warmup=0).elements == 4
    with pytest.raises(TypeError):
        stroboscope.time_dataset(7)


def test_what_a_dataset_raises_goes_on():
    def broken():
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        stroboscope.time_dataset(broken())


def test_senseless_times_are_refused():
    for wrong in ({"seconds": 0}, {"warmup": -1}, {"seconds": float("nan")}):
        with pytest.raises(ValueError, match="seconds"):
            stroboscope.time_dataset([], **wrong)


def test_it_prints_rates_and_spread():
    timing, _ = drain([0.5] * 1000, warmup=2.0, element=array(64))
    assert str(timing) == (
        "128 examples/s, batches of 64: 2 elements/s\n"
        "an element every 500 ms (90% within 500 ms to 500 ms); 20 elements in 10 s"
    )


def test_tensorflow_datasets():
    tf = pytest.importorskip("tensorflow")
    data = {"x": tf.zeros([100, 3]), "y": tf.zeros([100])}
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(8).prefetch(2)
    timing = stroboscope.time_dataset(dataset, warmup=0)
    # Thirteen batches, of which the first starts the clock; the last has four.
    assert (timing.elements, timing.examples, timing.batch_size) == (12, 92, 8)
    assert timing.ended
    endless = stroboscope.time_dataset(dataset.repeat(), seconds=0.2, warmup=0.1)
    assert (endless.ended, endless.warm) == (False, True)


def test_torch_loaders():
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.zeros(100, 3), torch.zeros(100))
    timing = stroboscope.time_dataset(torch.utils.data.DataLoader(data, batch_size=8), warmup=0)
    assert (timing.elements, timing.examples, timing.batch_size) == (12, 92, 8)
