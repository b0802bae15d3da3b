"""Makes tests/kernels/golden/dequantize.txt: random blocks of each GGUF type and the fp32 bits that the gguf package gives.

Run: python3 -m venv venv && venv/bin/pip install -r tests/oracle/dequantize_requirements.txt
     venv/bin/python tests/oracle/dequantize.py > tests/kernels/golden/dequantize.txt
"""

import numpy
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

BLOCKS = {"F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q8_0": (32, 34)}
ELEMENTS = 2048
# Bit patterns a scale can have that random ones seldom do: zeros, subnormals, largest, smallest, one.
HARD_HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x3C00]


def finite_halves(values):
    """Random bits, with infinities and NaNs turned into ordinary numbers."""
    return numpy.where((values & 0x7C00) == 0x7C00, values & 0xBFFF, values).astype(numpy.uint16)


def rows_of(name, random):
    per_block, size = BLOCKS[name]
    count = ELEMENTS // per_block
    data = random.integers(0, 256, (count, size), dtype=numpy.uint8)
    halves = {"F16": 1, "Q4_0": 1, "Q8_0": 1, "Q4_1": 2}.get(name, 0)
    for place in range(halves):
        column = finite_halves(data[:, 2 * place : 2 * place + 2].copy().view(numpy.uint16)[:, 0])
        column[: len(HARD_HALVES)] = numpy.roll(HARD_HALVES, place)
        data[:, 2 * place : 2 * place + 2] = column.view(numpy.uint8).reshape(-1, 2)
    if name in ("F32", "BF16"):  # exponents below all ones
        data[:, -1] &= 0xBF
    return data.reshape(1, -1)


def main():
    random = numpy.random.default_rng(20)
    for name in BLOCKS:
        data = rows_of(name, random)
        source = data.view(numpy.float32) if name == "F32" else data.view(numpy.float16) if name == "F16" else data
        values = dequantize(source, GGMLQuantizationType[name]).astype(numpy.float32)
        bits = numpy.ascontiguousarray(values).view(numpy.uint8).tobytes()
        print(name, data.tobytes().hex(), bits.hex())


if __name__ == "__main__":
    main()
