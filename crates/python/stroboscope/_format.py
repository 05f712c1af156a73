"""Numbers as the command line prints them."""

from __future__ import annotations


def time(ms: float) -> str:
    """Three significant digits and the unit that suits the size.

    >>> time(7.6123), time(0.0021), time(61234.5), time(250)
    ('7.61 ms', '2.1 µs', '61.2 s', '250 ms')
    """
    for unit, scale in (("s", 1e-3), ("ms", 1.0), ("µs", 1e3), ("ns", 1e6)):
        value = ms * scale
        # 999.6 would print as 1000: the next unit starts where rounding reaches it.
        if abs(value) >= 0.9995:
            return f"{digits(value)} {unit}"
    return f"{ms * 1e9:.0f} ps"


def digits(value: float) -> str:
    """At most three significant digits, thousands apart by a comma."""
    size = abs(value)
    if size >= 999.5:
        return thousands(round(value))
    decimals = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def thousands(n: int) -> str:
    """Thousands apart by a comma.

    >>> thousands(1234567)
    '1,234,567'
    """
    return f"{n:,}"


def percent(share: float) -> str:
    """A share as percent, with a digit behind the point below ten.

    >>> percent(0.9577), percent(0.0286)
    ('96%', '2.9%')
    """
    value = share * 100
    return f"{value:.0f}%" if value >= 9.95 else f"{value:.1f}%"


def sentence(text: str) -> str:
    """End with a full stop."""
    return text if text.endswith((".", "?", ":")) else text + "."


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
