"""Memory for the frames of calls, in one piece for a whole request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

SLOTS = 20_000
"""Of eight bytes. The piece is the next power of two, 256 KB; what the frame leaves of it is enough for 800 others."""


def in_one_piece(application: Application) -> Application:
    """The same application, with all frames of a request in one piece of memory.

    Python takes memory for frames in pieces of 16 KB, and gives a piece back as soon as the first frame in it returns.
    Where a loop happens to call from the end of one piece into the next, every call asks the kernel for memory: a third
    of the time of a long timeline went there. A frame that says it is large gets a piece of its size, and shares it.
    """

    def call(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return application(environ, start_response)

    call.__code__ = call.__code__.replace(co_stacksize=SLOTS)
    return call
