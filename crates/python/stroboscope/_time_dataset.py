"""How fast an input pipeline is by itself, without a model that waits for it."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from stroboscope import _format


@dataclass(frozen=True)
class DatasetTiming:
    """What :func:`time_dataset` measured. Unknown is ``None``, never 0."""

    #: Elements (mostly batches) that the figures rest on, and how long they took to come.
    elements: int
    seconds: float
    #: Examples in those elements; ``None`` where an element has no array to count them by.
    examples: int | None
    #: The most common number of examples in an element.
    batch_size: int | None
    #: Time from one element to the next.
    median_ms: float | None
    p05_ms: float | None
    p95_ms: float | None
    #: From asking for an iterator until the first element.
    first_s: float | None
    #: Left out: fetched while buffers filled and emptied.
    warmup_elements: int
    #: Whether the warm-up was over before the dataset was.
    warm: bool
    #: Whether the dataset ended by itself.
    ended: bool

    @property
    def elements_per_s(self) -> float | None:
        """Elements a second, as a model that never waits would take them."""
        return self.elements / self.seconds if self.elements and self.seconds > 0 else None

    @property
    def examples_per_s(self) -> float | None:
        """Examples a second."""
        if self.examples is None or not self.elements or self.seconds <= 0:
            return None
        return self.examples / self.seconds

    def __str__(self) -> str:
        """Say it in two lines."""
        if self.elements_per_s is None or self.median_ms is None:
            n = self.warmup_elements
            return f"{n} {'element' if n == 1 else 'elements'}: too few to time"
        rates = f"{_rate(self.elements_per_s)} elements/s"
        if self.examples_per_s is not None:
            batches = "" if self.batch_size is None else f", batches of {self.batch_size}"
            rates = f"{_rate(self.examples_per_s)} examples/s{batches}: {rates}"
        spread = ""
        if self.p05_ms is not None and self.p95_ms is not None:
            spread = f" (90% within {_format.time(self.p05_ms)} to {_format.time(self.p95_ms)})"
        count = f"{_format.thousands(self.elements)} elements in {_format.time(self.seconds * 1e3)}"
        lines = [rates, f"an element every {_format.time(self.median_ms)}{spread}; {count}"]
        if not self.warm:
            lines.append(
                "the dataset ended during the warm-up: what was read ahead counts as if it had "
                "just been made; repeat() it, or shorten warmup"
            )
        return "\n".join(lines)

    __repr__ = __str__


def time_dataset(
    dataset: Iterable[Any], seconds: float = 10.0, warmup: float = 2.0
) -> DatasetTiming:
    """Drain a dataset without a model, and say how fast it delivers.

    Takes a ``tf.data.Dataset``, a PyTorch ``DataLoader``, a generator: whatever can be iterated
    over. Elements of the first ``warmup`` seconds after the first one are left out, as they come
    from buffers that were filled before anybody asked, or pay for opening files and filling
    shuffle buffers. Then it runs for ``seconds``, or until the dataset ends. Examples are counted
    by the first dimension of an element's first array.

    If training takes fewer examples a second than this, the model is the limit, not its input.

    >>> import stroboscope
    >>> timing = stroboscope.time_dataset(range(1000), warmup=0)
    >>> timing.elements, timing.ended
    (999, True)
    """
    if not seconds > 0 or not warmup >= 0:
        raise ValueError("seconds must be above 0, and warmup not below")
    return _drain(dataset, seconds, warmup, time.perf_counter)


def _drain(
    dataset: Iterable[Any], seconds: float, warmup: float, clock: Callable[[], float]
) -> DatasetTiming:
    asked = clock()
    # When each element came, and how many examples were in it; the first entry only starts the
    # clock. While warming up, everything is kept: the dataset may end before that is over.
    came: list[float] = []
    sizes: list[int | None] = []
    n_warmup, warm, ended = 0, False, True
    for element in dataset:
        now = clock()
        came.append(now)
        sizes.append(_n_examples(element))
        # The next one must not be made while this one still takes its memory.
        del element
        if not warm and now - came[0] >= warmup:
            # This element ends the warm-up: counting starts when it came.
            warm, n_warmup = True, len(came)
            first = came[0]
            came, sizes = [now], sizes[-1:]
        elif warm and now - came[0] >= seconds:
            ended = False
            break
    if warm:
        first_s: float | None = first - asked
    else:
        first_s = came[0] - asked if came else None
        n_warmup = min(len(came), 1)
    return _timing(came, sizes[1:], first_s, n_warmup, warm=warm, ended=ended)


def _timing(
    came: list[float],
    sizes: list[int | None],
    first_s: float | None,
    n_warmup: int,
    *,
    warm: bool,
    ended: bool,
) -> DatasetTiming:
    gaps_ms = sorted((after - before) * 1e3 for before, after in zip(came, came[1:]))
    known = [it for it in sizes if it is not None]
    return DatasetTiming(
        elements=len(gaps_ms),
        seconds=came[-1] - came[0] if came else 0.0,
        examples=sum(known) if known and len(known) == len(sizes) else None,
        batch_size=statistics.mode(known) if known else None,
        median_ms=statistics.median(gaps_ms) if gaps_ms else None,
        p05_ms=_quantile(gaps_ms, 0.05),
        p95_ms=_quantile(gaps_ms, 0.95),
        first_s=first_s,
        warmup_elements=n_warmup,
        warm=warm,
        ended=ended,
    )


def _quantile(ordered: list[float], share: float) -> float | None:
    # Of fewer, the ends say more about chance than about the pipeline.
    if len(ordered) < 20:
        return None
    at = share * (len(ordered) - 1)
    low, high = ordered[math.floor(at)], ordered[math.ceil(at)]
    return low + (high - low) * (at - math.floor(at))


# Deeper or wider, an element is no batch of arrays.
_MOST_LOOKED_AT = 64


def _n_examples(element: object) -> int | None:
    """The first dimension of the first array in a nest of dicts, lists and tuples."""
    waiting = deque([element])
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            break
        it = waiting.popleft()
        shape = getattr(it, "shape", None)
        if shape is not None:
            try:
                return int(shape[0])
            except (TypeError, ValueError, IndexError, KeyError):
                # A scalar, or a dimension that is not known.
                return None
        if isinstance(it, Mapping):
            waiting.extendleft(reversed(list(it.values())[:_MOST_LOOKED_AT]))
        elif isinstance(it, (list, tuple)):
            waiting.extendleft(reversed(it[:_MOST_LOOKED_AT]))
    return None


def _rate(value: float) -> str:
    return _format.digits(value)
