"""How the cores are parted, sign by sign."""

from __future__ import annotations

import pytest
from tests.scheduling.tickets import ns

from antiphon.scheduling.settings import SchedulingSettings
from antiphon.scheduling.shares import Side, Signs, Usage, hear_share

pytestmark = pytest.mark.unit
RULES = SchedulingSettings()


@pytest.mark.parametrize(
    ("signs", "share"),
    [
        (Signs(), 0.6),
        (Signs(voiced_frames=3, energy_ratio=0.71), 0.85),
        (Signs(voiced_frames=3, certainty=0.9), 0.85),
        (Signs(voiced_frames=2, energy_ratio=1.0), 0.6),
        (Signs(voiced_frames=9, energy_ratio=0.7, certainty=0.7), 0.6),
        (Signs(decode_lag_ms=80), 0.45),
        (Signs(decode_lag_ms=79.9), 0.6),
        (Signs(tokens_per_s=11.9), 0.45),
        (Signs(tokens_per_s=12.0), 0.6),
        (Signs(voiced_frames=3, energy_ratio=1.0, decode_lag_ms=80), 0.45),
    ],
)
def test_hearing_has_the_share_that_the_signs_call_for(signs, share):
    assert hear_share(signs, RULES) == pytest.approx(share)


def test_a_side_is_beyond_its_share_by_what_it_had_lately():
    usage = Usage()
    assert not usage.is_beyond(Side.HEAR, 0.6)  # nobody had anything
    usage.add(Side.HEAR, ns(70), ns(0), RULES)
    usage.add(Side.SPEAK, ns(30), ns(0), RULES)
    assert usage.hear_part() == pytest.approx(0.7)
    assert usage.is_beyond(Side.HEAR, 0.6)
    assert not usage.is_beyond(Side.SPEAK, 0.6)
    # half a window later the 70 count 35, the 30 count 15
    usage.add(Side.SPEAK, ns(40), ns(250), RULES)
    assert usage.hear_part() == pytest.approx(35 / 90)
    assert usage.is_beyond(Side.SPEAK, 0.6)
