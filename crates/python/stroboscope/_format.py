"""Numbers as the command line prints them."""

from __future__ import annotations


def time(ms: float) -> str:
    """Four significant digits and the unit that suits the size.

    >>> time(7.6123), time(0.0021), time(61234.5)
    ('7.612 ms', '2.100 µs', '61.23 s')
    """
    for unit, scale in (("s", 1e-3), ("ms", 1.0), ("µs", 1e3), ("ns", 1e6)):
        value = ms * scale
        # 999.96 would print as 1000: the next unit starts where rounding reaches it.
        if abs(value) >= 0.99995:
            return f"{digits(value)} {unit}"
    return f"{ms * 1e9:.0f} ps"


def digits(value: float) -> str:
    """At most four significant digits, thousands apart by a thin space."""
    size = abs(value)
    if size >= 999.95:
        return thousands(round(value))
    decimals = 1 if size >= 99.995 else 2 if size >= 9.9995 else 3
    return f"{value:.{decimals}f}"


def thousands(n: int) -> str:
    """Thousands apart by a thin space.

    >>> thousands(1234567)
    '1\\u2009234\\u2009567'
    """
    return f"{n:,}".replace(",", "\u2009")


def percent(share: float) -> str:
    """A share as percent, with a digit behind the point below ten.

    >>> percent(0.9577), percent(0.0286)
    ('96 %', '2.9 %')
    """
    value = share * 100
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"


def _times(speedup: float) -> str:
    """As many digits as such a prediction carries."""
    if speedup < 1.995:
        return f"{speedup:.2f}"
    return f"{speedup:.1f}" if speedup < 9.95 else f"{speedup:.0f}"


def gain(cost_ms: float, low: float | None, high: float | None, severity: str) -> str:
    """What a finding costs and what its fix wins.

    >>> gain(482, 34.1, 40.6, "high"), gain(1.5, None, None, "low"), gain(0, None, None, "low")
    ('−482.0 ms · 34–41× faster', '1.500 ms · low', 'low')
    """
    cost = time(cost_ms) if cost_ms else ""
    if low is None or high is None or high <= 1:
        return " · ".join(it for it in (cost, severity) if it)
    ends = _times(low), _times(high)
    span = ends[0] if ends[0] == ends[1] else "–".join(ends)
    return " · ".join(it for it in (f"−{cost}" if cost else "", f"{span}× faster") if it)


def sentence(text: str) -> str:
    """Begin with a capital, end with a full stop; a name keeps its spelling."""
    if not text.endswith((".", "?", ":")):
        text += "."
    first = text.split(" ", 1)[0]
    if first.rstrip(",.").isalpha() and first.islower():
        text = text[0].upper() + text[1:]
    return text


def shorten(text: str, width: int) -> str:
    """Keep both ends: an op's scope and its own name both tell.

    >>> shorten("abcdefghij", 7)
    'ab…ghij'
    """
    if len(text) <= width:
        return text
    keep = max(width - 1, 0)
    head = keep // 3
    return f"{text[:head]}…{text[len(text) - (keep - head) :]}"
