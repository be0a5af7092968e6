"""A folder as Hugging Face lays a model out in; its numbers and tensors out.

Threads: blocking; a tensor is read when it is asked for. It does not know devices.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from antiphon.core.errors import CallerError, MachineError
from antiphon.gpu.llama.shape import LlamaShape, shape_of_config

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from torch import Tensor

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"


class SafetensorsFolder:
    """One opened folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        """Read which file holds which tensor.

        Raises:
            MachineError: the package safetensors is not installed.
            CallerError: a file is missing or cannot be read.
        """
        try:
            from safetensors import safe_open  # noqa: PLC0415 - of the extra, and only this reader's
        except ImportError as error:
            raise MachineError(
                "a model's folder needs the package safetensors", hint="install it: pip install 'antiphon[gpu]'"
            ) from error
        self._folder = folder
        self.config = _json(folder / "config.json")
        if (folder / _INDEX).is_file():
            placed = _json(folder / _INDEX).get("weight_map")
            files = sorted(set(placed.values())) if isinstance(placed, dict) else []
        else:
            files = [_SINGLE]
        self._opened = ExitStack()
        self._holders: dict[str, Any] = {}
        try:
            for file in files:
                holder = self._opened.enter_context(safe_open(str(folder / file), framework="pt"))
                self._holders |= dict.fromkeys(holder.keys(), holder)
        except Exception as error:
            self._opened.close()
            raise CallerError(
                f"{folder} cannot be read as a model", hint="name a folder with config.json and .safetensors files"
            ) from error

    def shape(self) -> LlamaShape:
        """Raises CallerError where the engine does not do what config.json says."""
        return shape_of_config(self.config)

    def tensor(self, name: str) -> Tensor:
        """Raises CallerError where there is none of that name."""
        holder = self._holders.get(name)
        if holder is None:
            raise CallerError(f"{self._folder} has no tensor {name}", hint="fetch the model again")
        tensor: Tensor = holder.get_tensor(name)
        return tensor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._holders.clear()
        self._opened.close()


def _json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CallerError(f"{path} cannot be read", hint="name a folder as Hugging Face lays it out") from error
    if not isinstance(read, dict):
        raise CallerError(f"{path} is not an object", hint="fetch the model again")
    return read
