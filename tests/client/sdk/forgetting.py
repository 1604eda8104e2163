"""A plugin of pytest: governed sessions that forget how many items they were asked for. The SDK's tests must notice."""

from __future__ import annotations

from typing import Any

from memadmin.client.sessions import GovernedSession


async def all_of_them(session: Any, limit: int | None = None, *, wrapper: Any = None, **more: Any) -> list[Any]:
    items: list[Any] = await session.inner.get_items(**more)
    return items


def pytest_configure() -> None:
    GovernedSession.get_items = all_of_them  # type: ignore[method-assign, assignment]
