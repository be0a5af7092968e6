"""Which sample rates sound can have. Units: Hz."""

from __future__ import annotations

from antiphon.core.errors import CallerError

RATE_MIN_HZ = 1_000  # lower and higher are misread headers, not sound
RATE_MAX_HZ = 768_000


def checked_rate(rate_hz: int) -> int:
    """`rate_hz`, if sound can have it.

    Raises:
        CallerError: it cannot.
    """
    if not RATE_MIN_HZ <= rate_hz <= RATE_MAX_HZ:
        hint = f"use {RATE_MIN_HZ} to {RATE_MAX_HZ} Hz"
        raise CallerError(f"a sample rate of {rate_hz} Hz is not possible", hint=hint)
    return rate_hz
