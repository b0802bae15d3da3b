#!/usr/bin/env python3
"""Can one tenant tell by the time to the first token whether another has sent the same prompt?

Starts a server on loopback with two tenants. In each trial the first tenant sends a prompt that nobody has sent before; then the
second one is timed: on the same prompt (what the attack is about), or on one that nobody has sent. A third kind is the control: the
second tenant's own prompt a second time, which the cache does serve. The figure is the area under the curve (AUC): the probability
that a time of one kind is below one of the other. 0.5 is a coin; the control shows that the measurement could have seen a hit.

    cross_tenant_timing.py --server build/release/server/pagoda-server --model FILE.gguf --trials 2000

Exit code 0: the 99.9 % interval of the cross-tenant AUC lies inside 0.45-0.55 and the control is at least 0.99. Not part of the
continuous integration: it measures time. Needs what python_client.py needs (requirements.txt).
"""

import argparse
import hashlib
import math
import pathlib
import random
import secrets
import subprocess
import sys
import tempfile
import time

import grpc

import python_client

Z_999 = 3.2905  # of the normal distribution, two-sided
BOUNDS = (0.45, 0.55)
LEAST_CONTROL = 0.99


def start(arguments, folder, tokens):
    """A server with tenants `first` and `second`; returns it and its address."""
    tenants = folder / "tenants.conf"
    tenants.write_text("".join(f"[{name}]\ntoken-digest = {hashlib.sha256(token.encode()).hexdigest()}\n"
                               for name, token in tokens.items()), encoding="utf-8")
    port_file = folder / "port"
    process = subprocess.Popen([arguments.server, "--model", arguments.model, "--listen", "127.0.0.1:0", "--port-file", port_file,
                                "--kv-cache-memory", arguments.kv_cache_memory, "--tenants", tenants, "--log-level", "warning"])
    deadline = time.monotonic() + python_client.START_SECONDS
    while not (port_file.exists() and port_file.read_text(encoding="utf-8").strip()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("cross_tenant_timing: the server did not start")
        time.sleep(0.05)  # a pause between looks
    return process, f"127.0.0.1:{port_file.read_text(encoding='utf-8').strip()}"


class Caller:
    """Sends prompts in a tenant's name and times their first token."""

    def __init__(self, stub, messages, token):
        self.stub, self.messages = stub, messages
        self.metadata = (("authorization", f"Bearer {token}"),)

    def seconds_to_first_token(self, prompt):
        request = self.messages.GenerateRequest()
        request.token_ids.ids.extend(prompt)
        request.sampling.temperature = 0
        request.stop.max_tokens = 1
        request.stop.ignore_eos = True
        begin = time.perf_counter()
        first = None
        for message in self.stub.Generate(request, metadata=self.metadata, timeout=python_client.CALL_SECONDS):
            if first is None and message.deltas:
                first = time.perf_counter() - begin
        return first


def area_under_curve(low, high):
    """P(a time of `low` < one of `high`), ties by halves, and half the width of its 99.9 % interval (Hanley and McNeil)."""
    ordered = sorted([(t, 0) for t in low] + [(t, 1) for t in high])
    ranks, i = 0.0, 0
    while i < len(ordered):
        j = i
        while j < len(ordered) and ordered[j][0] == ordered[i][0]:
            j += 1
        ranks += sum(which for _, which in ordered[i:j]) * (i + j + 1) / 2
        i = j
    n, m = len(low), len(high)
    area = (ranks - m * (m + 1) / 2) / (n * m)
    q1, q2 = area / (2 - area), 2 * area * area / (1 + area)
    variance = (area * (1 - area) + (m - 1) * (q1 - area * area) + (n - 1) * (q2 - area * area)) / (n * m)
    return area, Z_999 * math.sqrt(max(0.0, variance))


def measure(arguments, stub, messages, tokens):
    """Times of the second tenant by kind."""
    first, second = (Caller(stub, messages, tokens[name]) for name in ("first", "second"))
    draw = random.Random(arguments.seed)

    def fresh():
        return [draw.randrange(arguments.vocabulary) for _ in range(arguments.prompt_tokens)]

    times = {"cross": [], "miss": [], "own": []}
    for _ in range(20):  # warm up
        second.seconds_to_first_token(fresh())
    order = [kind for kind in times for _ in range(arguments.trials)]
    draw.shuffle(order)
    for kind in order:
        theirs = fresh()
        first.seconds_to_first_token(theirs)
        mine = theirs if kind == "cross" else fresh()
        if kind == "own":
            second.seconds_to_first_token(mine)
        times[kind].append(second.seconds_to_first_token(mine))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--trials", type=int, default=2000, help="of each kind")
    parser.add_argument("--prompt-tokens", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=1000, help="prompts are drawn below this id")
    parser.add_argument("--kv-cache-memory", default="256MiB")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    tokens = {name: secrets.token_urlsafe(33) for name in ("first", "second")}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        python_client.make_stubs(folder)
        from pagoda.v1 import inference_pb2, inference_pb2_grpc  # pylint: disable=import-outside-toplevel
        process, target = start(arguments, folder, tokens)
        try:
            with grpc.insecure_channel(target) as channel:
                python_client.wait_serving(channel)
                times = measure(arguments, inference_pb2_grpc.InferenceServiceStub(channel), inference_pb2, tokens)
        finally:
            process.terminate()
            process.wait()
    cross, cross_half = area_under_curve(times["cross"], times["miss"])
    own, own_half = area_under_curve(times["own"], times["miss"])
    for kind, values in times.items():
        ordered = sorted(values)
        print(f"{kind:5}  n {len(ordered)}  median {1e3 * ordered[len(ordered) // 2]:.3f} ms")
    print(f"cross-tenant AUC {cross:.4f} +- {cross_half:.4f} (99.9 %); same tenant {own:.4f} +- {own_half:.4f}; seed {arguments.seed}")
    good = BOUNDS[0] <= cross - cross_half and cross + cross_half <= BOUNDS[1] and own >= LEAST_CONTROL
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
