"""Points in time, as documents and rosters write them."""

from __future__ import annotations

from datetime import datetime, timezone


def moment(text: str) -> datetime:
    """A time with its zone from ISO 8601; UTC if it names none. Raises ValueError."""
    value = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
