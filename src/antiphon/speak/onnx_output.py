"""A serialised ONNX model and a name inside its graph in, the model with that tensor as one more output out.

Models add up how long each sound lasts inside their graph and give only the sound. Declared as an output the lengths
cost nothing, and put every word in its place. No library that knows the format is needed for it: in a serialised
message a repeated field may be continued at the end.
"""

from __future__ import annotations

_NAME, _OUTPUT, _GRAPH = 1, 12, 7  # fields of ValueInfoProto, GraphProto, ModelProto
_LONGEST_NAME = 120  # so that every length fits into one byte


def with_output(model: bytes, name: bytes) -> bytes:
    """`model` with the tensor `name` as its last output; as it was if no such name is in it."""
    if not name or len(name) > _LONGEST_NAME or name not in model:
        return model
    entry = name
    for field in (_NAME, _OUTPUT, _GRAPH):
        entry = bytes([field << 3 | 2, len(entry)]) + entry
    return model + entry
