"""What LLVM can do and Numba has no name for.

``store_bits`` turns sixty-four bits into sixty-four bytes in one store. A row of 0 and 1 bytes is
written from words of 64 bits. LLVM widens a word to a vector of bytes with a few instructions on
any processor; a Python loop stands in where nothing is compiled. ``prefetch`` asks for a place in
memory before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["prefetch", "store_bits"]


def _store_bits_in_python(row: np.ndarray, start: int, word: np.uint64) -> None:
    for i in range(64):
        row[start + i] = (word >> np.uint64(i)) & np.uint64(1)


@intrinsic
def _store_bits_in_llvm(typing_context, row, start, word):
    """Compiles ``store_bits``; the row may lie at any address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(row)(context, builder, arguments[0])
        bools = builder.bitcast(arguments[2], ir.VectorType(ir.IntType(1), 64))
        data = builder.zext(bools, ir.VectorType(ir.IntType(8), 64))
        place = cgutils.gep_inbounds(builder, array.data, arguments[1])
        builder.store(data, builder.bitcast(place, data.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(row, types.intp, types.uint64), generate


#: ``store_bits(row, start, word)`` writes bit i of ``word`` to ``row[start + i]``, i from 0 to 63.
#: ``row`` is a contiguous array of one-byte items with room for all 64.
store_bits: Callable[..., Any] = (
    _store_bits_in_python if config.DISABLE_JIT else _store_bits_in_llvm  # type: ignore[attr-defined]
)


@intrinsic
def _prefetch_in_llvm(typing_context, array, index):
    """Compiles ``prefetch``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        items = context.make_array(array)(context, builder, arguments[0])
        place = cgutils.gep_inbounds(builder, items.data, arguments[1])
        number = ir.IntType(32)
        place = builder.bitcast(place, ir.IntType(8).as_pointer())
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            (place.type,),
            ir.FunctionType(ir.VoidType(), [place.type, number, number, number]),
        )
        to_write, to_stay, data = number(1), number(3), number(1)
        builder.call(function, [place, to_write, to_stay, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _prefetch_in_python(array: np.ndarray, index: int) -> None:
    """There is nothing to be won where nothing is compiled."""


#: ``prefetch(array, index)`` starts to fetch item ``index`` of a contiguous array from memory, to
#: be read and written soon. It changes nothing but time.
prefetch: Callable[..., Any] = (
    _prefetch_in_python if config.DISABLE_JIT else _prefetch_in_llvm  # type: ignore[attr-defined]
)
