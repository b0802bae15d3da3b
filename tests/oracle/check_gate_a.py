#!/usr/bin/env python3
"""Gate A: are the answers transformers' own?

    check_gate_a.py ids --server HOST:PORT                  a running pagoda-server, started with
                                                            --activation-dtype f32 --kv-cache-dtype f32
    check_gate_a.py logits --tool build/dev/tests/oracle/logits_tool --model FILE.gguf

`ids` sends the prompts of goldens/gate_a.json as token ids over gRPC, all together and then one by one (what the first round
cached is found by the second), and compares 64 greedy ids of each. Where they part, the two highest logits of the oracle must
be closer than 1e-3, and at most one prompt in twenty may part in a round. `logits` compares 200 rows;
an error is relative to the root mean square of the oracle's row. Exit code 0 when the gate is passed.
"""

import argparse
import concurrent.futures
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MAX_GAP, MAX_PARTINGS, MAX_RELATIVE_ERROR = 1e-3, 1, 1e-3
NUM_COLUMNS, NUM_TOP = 256, 64
ROW_BYTES = 8 + 4 * NUM_COLUMNS + 8 * NUM_TOP + 16


def generated_stubs():
    """The client code that grpcio-tools makes from proto/, imported."""
    from grpc_tools import protoc

    folder = tempfile.mkdtemp(prefix="pagoda-stubs-")
    failed = protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"--python_out={folder}", f"--grpc_python_out={folder}",
                          str(ROOT / "proto/pagoda/v1/inference.proto")])
    assert failed == 0, "protoc failed"
    sys.path.insert(0, folder)
    from pagoda.v1 import inference_pb2, inference_pb2_grpc
    return inference_pb2, inference_pb2_grpc


def ask(stub, messages, prompt_ids, num_tokens):
    request = messages.GenerateRequest(token_ids=messages.TokenIds(ids=prompt_ids))
    request.sampling.temperature = 0
    request.stop.max_tokens = num_tokens
    request.stop.ignore_eos = True
    ids = []
    for response in stub.Generate(request):
        for delta in response.deltas:
            ids += delta.token_ids
    return ids


def check_ids(server, prompts):
    import grpc

    messages, services = generated_stubs()
    stub = services.InferenceServiceStub(grpc.insecure_channel(server))
    print(f"numerics: {stub.GetModel(messages.GetModelRequest()).numerics_id}")

    def answer(prompt):
        return ask(stub, messages, prompt["prompt_ids"], len(prompt["greedy_ids"]))

    with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
        together = list(pool.map(answer, prompts))
    passed = judge_ids("together", prompts, together)
    return judge_ids("one by one", prompts, [answer(prompt) for prompt in prompts]) and passed


def judge_ids(how, prompts, answers):
    partings = wide = 0
    for prompt, got in zip(prompts, answers):
        wanted = prompt["greedy_ids"]
        label = f"{how}: {prompt['name']} ({len(prompt['prompt_ids'])} tokens)"
        if got == wanted:
            print(f"{label}: equal")
            continue
        step = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
        gap = prompt["gaps"][step] if step < len(wanted) else float("inf")
        partings += 1
        wide += gap >= MAX_GAP
        print(f"{label}: parts at token {step} of {len(wanted)}, got {len(got)} tokens, gap there {gap:.3g}")
    print(f"{how}: {len(prompts) - partings} of {len(prompts)} prompts equal, {partings} part, {wide} of them at a gap >= {MAX_GAP}")
    return wide == 0 and partings <= MAX_PARTINGS


def read_rows():
    data = (HERE / "goldens/gate_a_logits.bin").read_bytes()
    assert len(data) % ROW_BYTES == 0
    for begin in range(0, len(data), ROW_BYTES):
        row = data[begin:begin + ROW_BYTES]
        prompt, position = struct.unpack_from("<II", row)
        fixed = np.frombuffer(row, "<f4", NUM_COLUMNS, 8)
        top_ids = np.frombuffer(row, "<u4", NUM_TOP, 8 + 4 * NUM_COLUMNS)
        top = np.frombuffer(row, "<f4", NUM_TOP, 8 + 4 * NUM_COLUMNS + 4 * NUM_TOP)
        mean, scale = struct.unpack_from("<dd", row, ROW_BYTES - 16)
        yield prompt, position, fixed, top_ids, top, mean, scale


def check_logits(command, prompts, limit):
    rows = list(read_rows())
    request = b""
    for index, prompt in enumerate(prompts):
        ids = prompt["prompt_ids"] + prompt["greedy_ids"][:-1]
        positions = [row[1] for row in rows if row[0] == index]
        request += struct.pack(f"<I{len(ids)}I", len(ids), *ids) + struct.pack(f"<I{len(positions)}I", len(positions), *positions)
    output = subprocess.run(command, input=request, stdout=subprocess.PIPE, check=True).stdout
    got = np.frombuffer(output, "<f4").reshape(len(rows), -1)
    columns = np.arange(NUM_COLUMNS) * got.shape[1] // NUM_COLUMNS
    errors, absolute = [], []
    for (_, _, fixed, top_ids, top, _, scale), mine in zip(rows, got):
        difference = max(np.abs(mine[columns] - fixed).max(), np.abs(mine[top_ids] - top).max())
        absolute.append(float(difference))
        errors.append(float(difference) / scale)
    worst = int(np.argmax(errors))
    same_first = sum(int(mine.argmax()) == int(row[3][0]) for row, mine in zip(rows, got))
    print(f"{len(rows)} rows: error relative to the row's root mean square: largest {max(errors):.3g} "
          f"(prompt '{prompts[rows[worst][0]]['name']}', position {rows[worst][1]}), median {np.median(errors):.3g}; "
          f"largest absolute {max(absolute):.3g}; first choice equal in {same_first}")
    return max(errors) <= limit


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="what", required=True)
    commands.add_parser("ids").add_argument("--server", required=True)
    logits = commands.add_parser("logits")
    logits.add_argument("--tool", required=True)
    logits.add_argument("--model", required=True)
    logits.add_argument("--activation-dtype", default="f32")
    logits.add_argument("--kv-cache-dtype", default="f32")
    logits.add_argument("--limit", type=float, default=MAX_RELATIVE_ERROR)
    args = parser.parse_args()
    prompts = json.loads((HERE / "goldens/gate_a.json").read_text())["prompts"]
    if args.what == "ids":
        passed = check_ids(args.server, prompts)
    else:
        passed = check_logits([args.tool, args.model, args.activation_dtype, args.kv_cache_dtype], prompts, args.limit)
    print("passed" if passed else "not passed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
