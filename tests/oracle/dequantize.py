"""Makes tests/kernels/golden/dequantize.txt: random blocks of each GGUF type and the fp32 bits that the gguf package gives.

Run: python3 -m venv venv && venv/bin/pip install -r tests/oracle/dequantize_requirements.txt
     venv/bin/python tests/oracle/dequantize.py > tests/kernels/golden/dequantize.txt
"""

import numpy
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

BLOCKS = {"F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q8_0": (32, 34),
          "Q5_0": (32, 22), "Q5_1": (32, 24), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210)}
# Where a block has its f16 numbers.
HALVES = {"F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q8_0": [0], "Q5_0": [0], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208]}
ELEMENTS, K_ELEMENTS = 2048, 6144
# All bytes of one block: the smallest and largest quants and sub-scales, and both sides of the sign.
HARD_BYTES = [0x00, 0xFF, 0x80, 0x7F]
# Bit patterns a scale can have that random ones seldom do: zeros, subnormals, largest, smallest, one.
HARD_HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x3C00]


def finite_halves(values):
    """Random bits, with infinities and NaNs turned into ordinary numbers."""
    return numpy.where((values & 0x7C00) == 0x7C00, values & 0xBFFF, values).astype(numpy.uint16)


def rows_of(name, random):
    per_block, size = BLOCKS[name]
    count = (K_ELEMENTS if per_block == 256 else ELEMENTS) // per_block
    data = random.integers(0, 256, (count, size), dtype=numpy.uint8)
    if name[1] in "56" or name.endswith("K"):
        for at, byte in enumerate(HARD_BYTES):
            data[count - 1 - at] = byte
    for turn, place in enumerate(HALVES.get(name, [])):
        column = finite_halves(data[:, place : place + 2].copy().view(numpy.uint16)[:, 0])
        column[: len(HARD_HALVES)] = numpy.roll(HARD_HALVES, turn)
        data[:, place : place + 2] = column.view(numpy.uint8).reshape(-1, 2)
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
