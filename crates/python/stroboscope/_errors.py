"""What can go wrong, with the messages of the command line."""

from __future__ import annotations


class Error(Exception):
    """A profile could not be opened, or a question about it not be answered.

    The message says what is wrong, where, and what to try.
    """

    __module__ = "stroboscope"


class NotFoundError(Error, FileNotFoundError):
    """There is no such file or folder."""

    __module__ = "stroboscope"


class UnknownTableError(Error, KeyError):
    """There is no table of that name; the message says which there are."""

    __module__ = "stroboscope"

    # A KeyError prints its message in quotes.
    __str__ = Exception.__str__
