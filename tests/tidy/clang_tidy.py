#!/usr/bin/env python3
"""Runs clang-tidy over every source of a build, once per content.

A file is checked again only when it, a header it includes, its command, the rules or the tool change; what passed is
remembered by hash in the user's cache folder. The headers are those that the build itself recorded, so the build must be
up to date. Exit code 0 when all pass.

    clang_tidy.py --build build/dev [--jobs N] [FOLDER ...]
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
PROGRESS_EVERY = 50


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(base) / "pagoda" / "clang-tidy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def recorded_headers(build):
    """Object file -> every file it was made from, as the build tool recorded them."""
    done = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True)
    headers, current = {}, None
    for line in done.stdout.splitlines():
        if line.startswith("    "):
            headers[current].append(line.strip())
        elif ": #deps" in line:
            current = line.split(": #deps", maxsplit=1)[0]
            headers[current] = []
    return headers


class Contents:
    """Hashes of files, each read once."""

    def __init__(self, build):
        self.build = build
        self.known = {}

    def of(self, name):
        path = pathlib.Path(self.build, name).resolve()
        if path not in self.known:
            self.known[path] = hashlib.sha256(path.read_bytes()).digest()
        return self.known[path]


def digest(entry, root, salt, made_from):
    command = entry["command"].replace(str(root), "").replace("/usr/bin/ccache ", "")
    return hashlib.sha256(salt + command.encode() + b"".join(made_from)).hexdigest()


def check(entry, build, stamp):
    done = subprocess.run([TOOL, "-quiet", "-p", str(build), entry["file"]],
                          capture_output=True, text=True, check=False)
    if done.returncode == 0:
        stamp.touch()
    return entry["file"], done.returncode, done.stdout + ("" if done.returncode in (0, 1) else done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("folders", nargs="*", help="only sources below these, as scheduler or tests/text")
    args = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    salt = version + b"".join(rules.read_bytes() for rules in sorted(root.glob("**/.clang-tidy")))

    entries = json.loads((args.build / "compile_commands.json").read_text(encoding="utf-8"))
    ours = [e for e in entries if "/generated/" not in e["file"] and "verify_interface" not in e["file"]]
    if args.folders:
        chosen = tuple(f"{root}/{folder.rstrip('/')}/" for folder in args.folders)
        ours = [e for e in ours if e["file"].startswith(chosen)]
    headers, contents = recorded_headers(args.build), Contents(args.build)
    stale = []
    for entry in ours:
        words = shlex.split(entry["command"])
        made = words[words.index("-o") + 1]
        if made not in headers:
            sys.exit(f"clang-tidy: {made} is not built; build {args.build} first")
        stamp = cache_folder() / digest(entry, root, salt, map(contents.of, headers[made]))
        if not stamp.exists():
            stale.append((entry, stamp))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = [pool.submit(check, entry, args.build, stamp) for entry, stamp in stale]
        for count, run in enumerate(concurrent.futures.as_completed(runs), start=1):
            file, code, output = run.result()
            if code != 0:
                failed += 1
                print(output.strip() or f"{file}: clang-tidy failed", flush=True)
            if count % PROGRESS_EVERY == 0:
                print(f"clang-tidy: {count} of {len(stale)}", flush=True)
    print(f"clang-tidy: {len(ours)} files, {len(ours) - len(stale)} unchanged, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
