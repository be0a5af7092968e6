"""Did it hear the order? As the lab judges it."""

from antiphon.lab.heard import slot_is_heard, words

__all__ = ["slot_is_heard", "words"]
