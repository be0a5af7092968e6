"""A model's file in, an onnxruntime session on the CPU out.

Threads: loading blocks for some 0.1 s. A session may be called from any thread; it computes on as many as it was
given, which wait without spinning, so that two engines can share two cores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from pathlib import Path


def open_session(path: Path, *, threads: int) -> Any:
    """Load a model.

    Raises:
        MachineError: the file is missing or is no model that onnxruntime can read.
    """
    import onnxruntime  # noqa: PLC0415 - heavy: who loads no model does not pay for it

    if not path.is_file():
        raise MachineError(f"there is no model file {path}", hint="fetch the models: antiphon models fetch")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise MachineError(
            f"{path.name} cannot be loaded as an ONNX model", hint="verify the models: antiphon models verify"
        ) from error
