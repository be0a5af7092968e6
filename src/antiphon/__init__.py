"""A self-hosted voice conversation server that answers inside a human pause."""

__version__ = "0.1.0"
