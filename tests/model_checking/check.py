#!/usr/bin/env python3
"""Searches every state of the block pool's model, then shows that each broken rule is found.

The model is block_pool.pml; the search is Spin's. Prints a line a run and exits with 0 when the rules hold everywhere and every
seeded fault breaks an assertion.

    check.py [--compiler CC] [--keep FOLDER]
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MODEL = pathlib.Path(__file__).resolve().with_name("block_pool.pml")
FAULTS = re.compile(r"^#ifn?def (FAULT_\w+)", re.MULTILINE)
MEMORY_MIB = 6_000
HASH_BITS = 24


def search(folder, compiler, fault):
    """Returns the words of the search's own report."""
    folder.mkdir(parents=True)
    define = [f"-D{fault}"] if fault else []
    subprocess.run(["spin", *define, "-a", str(MODEL)], cwd=folder, check=True, capture_output=True)
    subprocess.run([compiler, "-O1", "-DSAFETY", "-DBFS", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MIB}", "-o", "search", "pan.c"],
                   cwd=folder, check=True, capture_output=True)
    done = subprocess.run(["./search", f"-w{HASH_BITS}"], cwd=folder, capture_output=True, text=True,
                          check=False)
    return done.stdout + done.stderr


def number(pattern, report):
    found = re.search(pattern, report)
    return float(found.group(1)) if found else 0.0


def judge(report, fault):
    """Whether the report says what it should; and the line to print."""
    errors = number(r"errors: (\d+)", report)
    states = number(r"([\d.e+]+) states, stored", report)
    seconds = number(r"elapsed time ([\d.]+) seconds", report)
    said = re.search(r"assertion violated (.*) \(at depth", report)
    whole = "Search not completed" not in report
    good = errors > 0 if fault else errors == 0 and states > 0 and whole
    outcome = said.group(1)[:70] if said else ("no violation" if whole else "no violation, search not whole")
    return good, f"{'ok ' if good else 'BAD'} {fault or 'the rules':24} {states:12.0f} states {seconds:7.1f} s  {outcome}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--compiler", default="clang-19")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the generated searches here")
    args = parser.parse_args()
    folder = args.keep or pathlib.Path(tempfile.mkdtemp(prefix="pagoda-model-"))
    faults = sorted(set(FAULTS.findall(MODEL.read_text(encoding="utf-8"))))
    failed = 0
    for fault in [None, *faults]:
        good, line = judge(search(folder / (fault or "rules"), args.compiler, fault), fault)
        print(line, flush=True)
        failed += not good
    if args.keep is None:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
