#!/usr/bin/env python3
"""Runs clang-tidy over every source of a build, once per content.

A file is checked again only when its preprocessed text, the rules or the tool change; what passed is remembered by hash in
the user's cache folder. Exit code 0 when all pass.

    clang_tidy.py --build build/dev [--jobs N]
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

TOOL = "clang-tidy-19"
OUTPUT_FLAGS = {"-o": 2, "-c": 1}


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(base) / "pagoda" / "clang-tidy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def preprocess_command(entry):
    words = shlex.split(entry["command"])
    if pathlib.Path(words[0]).name == "ccache":
        words = words[1:]
    kept, i = [], 0
    while i < len(words):
        step = OUTPUT_FLAGS.get(words[i], 0)
        if step == 0:
            kept.append(words[i])
        i += max(step, 1)
    return [*kept, "-E", "-P"]


def digest(entry, root, salt):
    done = subprocess.run(preprocess_command(entry), cwd=entry["directory"], capture_output=True, check=False)
    text = done.stdout.replace(str(root).encode(), b"")
    return hashlib.sha256(salt + text + pathlib.Path(entry["file"]).read_bytes()).hexdigest()


def check(entry, build, root, salt):
    stamp = cache_folder() / digest(entry, root, salt)
    if stamp.exists():
        return entry["file"], 0, "", True
    done = subprocess.run([TOOL, "-quiet", "-p", str(build), entry["file"]],
                          capture_output=True, text=True, check=False)
    if done.returncode == 0:
        stamp.touch()
    return entry["file"], done.returncode, done.stdout, False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    salt = version + (root / ".clang-tidy").read_bytes()

    entries = json.loads((args.build / "compile_commands.json").read_text(encoding="utf-8"))
    ours = [e for e in entries if "/generated/" not in e["file"] and "verify_interface" not in e["file"]]
    failed = cached = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for file, code, output, was_cached in pool.map(lambda e: check(e, args.build, root, salt), ours):
            cached += was_cached
            if code != 0:
                failed += 1
                print(output.strip() or f"{file}: clang-tidy failed")
    print(f"clang-tidy: {len(ours)} files, {cached} unchanged, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
