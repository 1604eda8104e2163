"""Progress bar of a run for commands; shown on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

from memadmin.runs.models import Run


@contextmanager
def progress_bar(label: str, unit: str = " sessions") -> Iterator[Callable[[Run], None]]:
    """A function that shows the progress of a run."""
    with tqdm(unit=unit, desc=label, disable=None) as bar:

        def show(run: Run) -> None:
            bar.total, bar.n = run.total, run.done
            bar.refresh()

        yield show
