"""What the machine code of each CUDA kernel must and must not hold, read from nvdisasm's listing of a cubin.

Exact where the source says how often an instruction stands in the code: loops over fragments are unrolled, loops over tiles are not.
"""

import collections
import re
import subprocess

# What may be called: labels of the kernel itself, and slow paths that the compiler adds to a rounded division, root or integer quotient
# or to an instruction of a warp.
INTERNAL = re.compile(r"\(\.L_x_\d+\)|\$__internal_\d+_\$__cuda_sm\d+x?_"
                      r"(div_rn_noftz_f32_slowpath|sqrt_rn_f32_slowpath|div_u64|shflsync_bfly_p|warpsync)\)")
# Double precision, library functions in place of exact_math.h, sums in an order that nobody decided, sums that flush subnormals.
NEVER = re.compile(r"(DADD|DMUL|DFMA|DSETP|DMMA|MUFU\.(EX2|LG2|SIN|COS|TANH)|ATOM|ATOMS|ATOMG|RED|REDUX|FFMA\.FTZ|FFMA32I\.FTZ|HMMA\.\w+\.F16)\b")
ROPES = {"Rope<1, 0>": "Rope", "Rope<0, 1>": "WriteKv", "Rope<1, 1>": "RopeAndWriteKv"}
SPILLS = ("LDL", "STL")
FUSED = ("FFMA", "FFMA32I", "FFMA2")
EXP_FUSED = 9  # of base::Exp


def plain_name(mangled):
    """The kernel's name as in kernel_table.h, from a name in the namespace `device`."""
    rest = mangled.split("6device", 1)[1]
    length = re.match(r"\d+", rest).group()
    name = rest[len(length):len(length) + int(length)]
    arguments = re.findall(r"L[ib](\d+)E", rest[len(length) + int(length):].split("Ev", 1)[0])
    whole = f"{name}<{', '.join(arguments)}>" if arguments else name
    return ROPES.get(whole, whole)


class Code:
    """One kernel: how often each instruction stands in it, with and without its modifiers, and whom it calls."""

    def __init__(self):
        self.opcodes = collections.Counter()
        self.full = collections.Counter()
        self.called = []


def parse(listing):
    kernels = {}
    code = None
    for line in listing.splitlines():
        if found := re.match(r"\s*\.section\s+\.text\.(\S+?),", line):
            code = kernels.setdefault(plain_name(found.group(1)), Code())
        elif found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)((?:\.[A-Za-z0-9_]+)*)(.*)", line):
            code.opcodes[found.group(1)] += 1
            code.full[found.group(1) + found.group(2)] += 1
            if found.group(1) == "CALL":
                code.called.append(found.group(3))
    return kernels


def gemm(products, loads):
    return {"HMMA": products, "LDSM": loads, "BAR": 1, "FUSED": 0, "SHFL": 0}


def attention(head_size):
    tile = 64 if head_size <= 128 else 32
    # One step of the scores, whose loop stays a loop; all steps of the weighted sum, with the sum of weights.
    return {"HMMA": tile // 8 + tile // 16 * (1 + head_size // 8), "LDSM": 1 + tile // 16 * (1 + head_size // 16), "BAR": 1, "SHFL": 4}


def decode(head_size, heads):
    tile, columns = (64 if head_size <= 128 else 32), heads // 8
    steps, dims = tile // 16, -(-head_size // 64)
    return {"HMMA": columns * (head_size // 16 + steps * (1 + dims)), "LDSM": head_size // 16 + steps * dims, "BAR": 4,
            "FUSED": columns * 6 * EXP_FUSED}  # no product was fused with the sum after it


EXACT = {
    "GemmFewRows": gemm(4, 4),
    "GemmManyRows": gemm(32, 20),
    **{f"Attention<{head}>": attention(head) for head in (32, 64, 96, 128, 256)},
    **{f"Decode<{head}, {heads}>": decode(head, heads) for head in (32, 64, 96, 128, 256) for heads in (8, 16)},
    "RmsNorm": {"SHFL": 5, "HMMA": 0, "BAR": 0},
    **{name: {"FUSED": 0, "BAR": 0, "SHFL": 0, "HMMA": 0} for name in ("Add", "Embed", "RoundRows", "WriteKv", "ZeroBlocks", "CopyBlocks")},
}
COPYING = re.compile(r"Gemm|Attention|Decode")


def faults_of_kernel(name, code, may_spill):
    faults = []
    found = dict(code.opcodes, FUSED=sum(code.opcodes[opcode] for opcode in FUSED))
    for what, wanted in EXACT.get(name, {}).items():
        if found.get(what, 0) != wanted:
            faults.append(f"{name} has {found.get(what, 0)} {what}; the source says {wanted}")
    if COPYING.match(name) and not (code.opcodes["LDGSTS"] and code.opcodes["LDGDEPBAR"] and code.opcodes["DEPBAR"]):
        faults.append(f"{name} has no asynchronous copies, or does not wait for them")
    for opcode in SPILLS:
        if code.opcodes[opcode] and not may_spill:
            faults.append(f"{name} has {code.opcodes[opcode]} {opcode}: a spill to local memory")
    for instruction, count in code.full.items():
        if NEVER.match(instruction):
            faults.append(f"{name} has {count} {instruction}, which no kernel may have")
    for target in code.called:
        if not INTERNAL.search(target):
            faults.append(f"{name} calls {target.strip()}")
    return faults


def faults_of(kernels, may_spill):
    """Everything wrong with the kernels of a listing; may_spill: names that may use local memory."""
    faults = [f"there is no kernel {name}" for name in EXACT if name not in kernels]
    for name, code in kernels.items():
        faults += faults_of_kernel(name, code, name in may_spill)
    return faults


def listing_of(nvdisasm, cubin):
    done = subprocess.run([nvdisasm, "-c", str(cubin)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{nvdisasm} {cubin}: {done.stderr.strip()}")
    return done.stdout
