"""Vectors of lanes for numba: one lane per sentence, so that a kernel is written like scalar code and runs as SIMD.

`Lanes(float32)` holds 16 numbers and `Lanes(float64)` 8, one 512-bit register (LLVM splits it where registers are
narrower). On these loops LLVM's own vectoriser reached a fifth of the machine's peak, explicit vectors reach
all of it (docs/decisions/0003-inference-is-compiled-with-numba.md). Arrays are flat; a row of lanes begins at an
element offset.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import factorial, log

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

REGISTER_BITS = 512


class Lanes(types.Type):
    """Vector of floats, one per sentence, as a type of numba."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype, self.count = dtype, REGISTER_BITS // dtype.bitwidth
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, _vector(fe_type))


def instruction(function: Callable) -> Callable:
    """Typed form of numba's `intrinsic`: kernels call it without the first parameter, the typing context."""
    return intrinsic(function)


def _vector(lanes: Lanes) -> ir.VectorType:
    return ir.VectorType(ir.FloatType() if lanes.dtype.bitwidth == 32 else ir.DoubleType(), lanes.count)


def _integers(lanes: Lanes) -> ir.VectorType:
    return ir.VectorType(ir.IntType(lanes.dtype.bitwidth), lanes.count)


def _pointer(context, builder, array_type, array, offset):
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [offset])


def _row_pointer(context, builder, array_type, array, offset):
    pointer = _pointer(context, builder, array_type, array, offset)
    return builder.bitcast(pointer, _vector(Lanes(array_type.dtype)).as_pointer())


def _constant(lanes: Lanes, value: float) -> ir.Constant:
    return ir.Constant(_vector(lanes), [value] * lanes.count)


def _spread(builder, scalar, lanes: Lanes):
    nothing = ir.Constant(_vector(lanes), ir.Undefined)
    first = builder.insert_element(nothing, scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [0] * lanes.count)
    return builder.shuffle_vector(first, nothing, zeros)


def _aligned_to_element(instruction, lanes: Lanes):
    instruction.align = lanes.dtype.bitwidth // 8
    return instruction


@instruction
def width(typing_context, array):
    """Return the lanes per vector for an array's dtype, a compile-time constant."""
    count = Lanes(array.dtype).count

    def generate(context, builder, signature, args):
        return ir.Constant(context.get_value_type(types.intp), count)

    return types.intp(array), generate


@instruction
def load(typing_context, array, offset):
    """Return the lanes at array[offset : offset + width]."""
    lanes = Lanes(array.dtype)

    def generate(context, builder, signature, args):
        pointer = _row_pointer(context, builder, signature.args[0], *args)
        return _aligned_to_element(builder.load(pointer), lanes)

    return lanes(array, types.intp), generate


@instruction
def store(typing_context, array, offset, value):
    """Set array[offset : offset + width] = value."""

    def generate(context, builder, signature, args):
        pointer = _row_pointer(context, builder, signature.args[0], args[0], args[1])
        _aligned_to_element(builder.store(args[2], pointer), value)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


@instruction
def spread(typing_context, array, offset):
    """Return array[offset] in all lanes."""
    lanes = Lanes(array.dtype)

    def generate(context, builder, signature, args):
        scalar = builder.load(_pointer(context, builder, signature.args[0], *args))
        return _spread(builder, scalar, lanes)

    return lanes(array, types.intp), generate


@instruction
def everywhere(typing_context, array, value):
    """Return a number in all lanes, in the array's dtype."""
    lanes = Lanes(array.dtype)

    def generate(context, builder, signature, args):
        scalar = context.cast(builder, args[1], signature.args[1], lanes.dtype)
        return _spread(builder, scalar, lanes)

    return lanes(array, value), generate


def _operator(symbol, instruction: str) -> None:
    @type_callable(symbol)
    def typed(context):
        def typer(left, right):
            return left if isinstance(left, Lanes) and left == right else None

        return typer

    @lower_builtin(symbol, Lanes, Lanes)
    def lowered(context, builder, signature, args):
        # contract: a product and its sum may become one fused multiply-add
        return getattr(builder, instruction)(*args, flags=("contract",))


for _symbol, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _operator(_symbol, _instruction)
_operator(operator.truediv, "fdiv")


@instruction
def larger(typing_context, left, right):
    """Return the lane by lane maximum; `right` if either is NaN."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return left(left, right), generate


@instruction
def where_above(typing_context, left, right, then, otherwise):
    """Return `then` where left > right, else `otherwise` (also if either is NaN)."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return then(left, right, then, otherwise), generate


def _polynomial(builder, x, coefficients, lanes: Lanes):
    """Σ c_k x^k by Horner's rule."""
    total = _constant(lanes, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        product = builder.fmul(total, x, flags=("contract",))
        total = builder.fadd(product, _constant(lanes, coefficient), flags=("contract",))
    return total


@instruction
def exp(typing_context, x):
    """Return e^x for x ≤ 0 to one unit in the last place; exactly 0 below the smallest normal number."""

    def generate(context, builder, signature, args):
        single = x.dtype.bitwidth == 32
        # adding 1.5·2^p leaves the nearest integer in the lowest bits of the sum
        magic, shift, degree, lowest = (
            (1.5 * 2**23, 23, 7, -87.0) if single else (1.5 * 2**52, 52, 13, -708.0)
        )
        high = 0.693359375 if single else 0.693147180369123816490
        contract = ("contract",)
        # unordered: NaN stays NaN
        normal = builder.fcmp_unordered(">", args[0], _constant(x, lowest))
        clamped = builder.select(normal, args[0], _constant(x, lowest))
        # no contraction here: this sum must be rounded
        marked = builder.fadd(builder.fmul(clamped, _constant(x, 1 / log(2))), _constant(x, magic))
        whole = builder.fsub(marked, _constant(x, magic))
        rest = builder.fsub(clamped, builder.fmul(whole, _constant(x, high), flags=contract), flags=contract)
        low = builder.fmul(whole, _constant(x, _LN2_LOW[single]), flags=contract)
        rest = builder.fsub(rest, low, flags=contract)
        power = _polynomial(builder, rest, [1 / factorial(k) for k in range(degree + 1)], x)
        bits = ir.Constant(_integers(x), [shift] * x.count)
        scale = builder.shl(builder.bitcast(marked, _integers(x)), bits)
        value = builder.bitcast(builder.add(builder.bitcast(power, _integers(x)), scale), _vector(x))
        return builder.select(normal, value, _constant(x, 0.0))

    return x(x), generate


_LN2_LOW = {True: -2.12194440054690583e-4, False: 1.90821492927058770002e-10}


@instruction
def ln(typing_context, x):
    """Return log x for normal x > 0, by log m = 2 atanh((m−1)/(m+1)); undefined elsewhere."""

    def generate(context, builder, signature, args):
        single = x.dtype.bitwidth == 32
        shift, terms = (23, 5) if single else (52, 11)
        ones, integers = _constant(x, 1.0), _integers(x)
        bits = builder.bitcast(args[0], integers)

        def whole(value):
            return ir.Constant(integers, [value] * x.count)

        # exponent such that the mantissa lies in [√½, √2)
        root_half = 0x3F3504F3 if single else 0x3FE6A09E667F3BCD
        exponent = builder.ashr(builder.sub(bits, whole(root_half)), whole(shift))
        mantissa = builder.bitcast(builder.sub(bits, builder.shl(exponent, whole(shift))), _vector(x))
        ratio = builder.fdiv(builder.fsub(mantissa, ones), builder.fadd(mantissa, ones))
        square = builder.fmul(ratio, ratio)
        series = _polynomial(builder, square, [2 / (2 * k + 1) for k in range(terms)], x)
        part = builder.fmul(ratio, series)
        return builder.fadd(part, builder.fmul(builder.sitofp(exponent, _vector(x)), _constant(x, log(2))))

    return x(x), generate


def _transposed(builder, rows, lanes: Lanes):
    """The transpose of a square block of vectors, by log2(width) rounds of interleaving halves."""
    n = lanes.count
    low = [index for k in range(n // 2) for index in (k, n + k)]
    high = [index for k in range(n // 2, n) for index in (k, n + k)]
    masks = [ir.Constant(ir.VectorType(ir.IntType(32), n), mask) for mask in (low, high)]
    for _ in range(n.bit_length() - 1):
        pairs = [(rows[k], rows[k + n // 2]) for k in range(n // 2)]
        rows = [builder.shuffle_vector(*pair, mask) for pair in pairs for mask in masks]
    return rows


@instruction
def gather_block(typing_context, source, starts, offset, target, place):
    """Set target[place + k·width + lane] = source[starts[lane] + offset + k] for k < width (transposed rows)."""
    lanes = Lanes(source.dtype)

    def generate(context, builder, signature, args):
        source_type, starts_type, _, target_type, _ = signature.args
        rows = []
        for lane in range(lanes.count):
            start = builder.load(_pointer(context, builder, starts_type, args[1], args[2].type(lane)))
            pointer = _row_pointer(context, builder, source_type, args[0], builder.add(start, args[2]))
            rows.append(_aligned_to_element(builder.load(pointer), lanes))
        for k, row in enumerate(_transposed(builder, rows, lanes)):
            place = builder.add(args[4], args[4].type(k * lanes.count))
            pointer = _row_pointer(context, builder, target_type, args[3], place)
            _aligned_to_element(builder.store(row, pointer), lanes)
        return context.get_dummy_value()

    return types.void(source, starts, types.intp, target, types.intp), generate


@instruction
def scatter_block(typing_context, source, place, target, starts, offset, count):
    """Set target[starts[lane] + offset + k] = source[place + k·width + lane] for k < width and lane < count."""
    lanes = Lanes(source.dtype)

    def generate(context, builder, signature, args):
        source_type, _, target_type, starts_type, _, _ = signature.args
        rows = []
        for k in range(lanes.count):
            place = builder.add(args[1], args[1].type(k * lanes.count))
            pointer = _row_pointer(context, builder, source_type, args[0], place)
            rows.append(_aligned_to_element(builder.load(pointer), lanes))
        for lane, row in enumerate(_transposed(builder, rows, lanes)):
            with builder.if_then(builder.icmp_signed(">", args[5], args[5].type(lane))):
                start = builder.load(_pointer(context, builder, starts_type, args[3], args[4].type(lane)))
                pointer = _row_pointer(context, builder, target_type, args[2], builder.add(start, args[4]))
                _aligned_to_element(builder.store(row, pointer), lanes)
        return context.get_dummy_value()

    return types.void(source, types.intp, target, starts, types.intp, types.intp), generate
