#!/usr/bin/env python3
"""Steps of one model here and in llama.cpp, by turns on the same cores.

    bench/beside_llama.py --ours build/bench/bench/bench_model --theirs FOLDER_OF_LLAMA_BENCH --model FILE.gguf [--threads 2] [--turns 5]

Each turn runs bench_model, then llama-bench (prefill of 512; decode of one sequence behind 128 tokens) and
llama-batched-bench (decode of 8 sequences behind 128). Printed per case: the best and the median rate of the turns, tokens per
second of the clock on the wall, and their ratio. Other work on the machine falls on both; the best turn is the one it fell on least.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess

OURS = {"prefill 512": "prefill 512", "decode B=1": "decode B=1 behind 128", "decode B=8": "decode B=8 behind 128"}


def output_of(command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def run_ours(args):
    """The rates as they are printed; what comes after the last wanted one is not waited for."""
    rates = {}
    with subprocess.Popen([args.ours, args.model, str(args.threads)], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            for case, name in OURS.items():
                found = re.match(rf"{name} +([\d.]+) tokens/s", line)
                if found:
                    rates[case] = float(found.group(1))
            if len(rates) == len(OURS):
                process.kill()
                break
    return rates


def run_theirs(args):
    folder = pathlib.Path(args.theirs)
    shared = ["-m", args.model, "-t", args.threads]

    def best(*options):
        text = output_of([folder / "llama-bench", *shared, "-fa", "1", "-r", args.repetitions, "-o", "json", *options])
        return max(json.loads(text)[0]["samples_ts"])

    batched = output_of([folder / "llama-batched-bench", *shared, "-fa", "on", "-c", "2048", "-npp", "128", "-ntg", "32", "-npl", "8",
                         "--output-format", "jsonl"])
    rows = [json.loads(line) for line in batched.splitlines() if line.startswith("{")]
    return {"prefill 512": best("-p", "512", "-n", "0"), "decode B=1": best("-p", "0", "-n", "64", "-d", "128"),
            "decode B=8": max(row["speed_tg"] for row in rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ours", required=True)
    parser.add_argument("--theirs", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=5, help="of llama-bench in a turn")
    args = parser.parse_args()
    ours, theirs = [], []
    for turn in range(args.turns):
        ours.append(run_ours(args))
        theirs.append(run_theirs(args))
        print(f"turn {turn}: ours {ours[-1]}, theirs {theirs[-1]}, load {os.getloadavg()[0]:.1f}", flush=True)
    for case in OURS:
        mine, other = [run[case] for run in ours], [run[case] for run in theirs]
        print(f"{case}: best {max(mine):.1f} and {max(other):.1f}, ratio {max(mine) / max(other):.2f}; median "
              f"{statistics.median(mine):.1f} and {statistics.median(other):.1f}, ratio "
              f"{statistics.median(mine) / statistics.median(other):.2f}")


if __name__ == "__main__":
    main()
