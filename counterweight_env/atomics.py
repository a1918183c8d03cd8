"""Words that threads share: loads, stores and exchanges that no compiler or processor reorders.

All are sequentially consistent. Without JIT there are no helper threads, and plain ones stand in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["array_at", "exchange_word", "load_word", "store_word"]

_ORDER = "seq_cst"


def _place(context: Any, builder: Any, words: Any, array: Any, index: Any) -> Any:
    return cgutils.gep_inbounds(
        builder, context.make_array(words)(context, builder, array).data, index
    )


def _load_in_python(words: np.ndarray, index: int) -> Any:
    return words[index]


@intrinsic
def _load_in_llvm(typing_context, words, index):
    """Compiles ``load_word``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, words, arguments[0], arguments[1])
        return builder.load_atomic(place, _ORDER, 8)

    return types.int64(words, types.intp), generate


def _store_in_python(words: np.ndarray, index: int, value: int) -> None:
    words[index] = value


@intrinsic
def _store_in_llvm(typing_context, words, index, value):
    """Compiles ``store_word``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, words, arguments[0], arguments[1])
        builder.store_atomic(arguments[2], place, _ORDER, 8)
        return context.get_dummy_value()

    return types.void(words, types.intp, types.int64), generate


def _exchange_in_python(words: np.ndarray, index: int, old: int, new: int) -> bool:
    if words[index] != old:
        return False
    words[index] = new
    return True


@intrinsic
def _exchange_in_llvm(typing_context, words, index, old, new):
    """Compiles ``exchange_word``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, words, arguments[0], arguments[1])
        found = builder.cmpxchg(place, arguments[2], arguments[3], _ORDER, _ORDER)
        return builder.extract_value(found, 1)

    return types.boolean(words, types.intp, types.int64, types.int64), generate


@intrinsic
def _pointer_in_llvm(typing_context, address):
    """An address as a pointer, for ``numba.carray``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.intp), generate


_jit: bool = not config.DISABLE_JIT  # type: ignore[attr-defined]

#: ``load_word(words, index)`` reads an int64.
load_word: Callable[..., Any] = _load_in_llvm if _jit else _load_in_python
#: ``store_word(words, index, value)`` writes an int64.
store_word: Callable[..., Any] = _store_in_llvm if _jit else _store_in_python
#: ``exchange_word(words, index, old, new)`` writes ``new`` if ``old`` is there; says whether.
exchange_word: Callable[..., Any] = _exchange_in_llvm if _jit else _exchange_in_python
#: ``array_at(address)`` is a pointer, of which ``numba.carray`` makes an array.
array_at: Callable[..., Any] = _pointer_in_llvm
