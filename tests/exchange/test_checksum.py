"""CRC32C by the published values, and both ways to it alike."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.exchange.checksum import crc32c_by_tables, find_checksum

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # RFC 3720, appendix B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_published_values(data, expected):
    assert expected == crc32c_by_tables(data)
    assert expected == find_checksum()(data)


@given(st.binary(max_size=1100))
def test_tables_and_bit_by_bit_agree(data):
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)

    assert register ^ 0xFFFFFFFF == crc32c_by_tables(data) == find_checksum()(data)


def test_without_the_wheel_or_its_c_part_tables_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    assert find_checksum() is crc32c_by_tables
    monkeypatch.setitem(sys.modules, "google_crc32c", SimpleNamespace(implementation="python"))
    assert find_checksum() is crc32c_by_tables
