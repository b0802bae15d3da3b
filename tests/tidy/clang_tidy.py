#!/usr/bin/env python3
"""Runs clang-tidy over every source of a build, once per content.

A file is checked again only when it, a header it includes, its command, the rules or the tool change; what passed is
remembered by hash in the user's cache folder. The headers are those that the build itself recorded, so the build must be
up to date. Exit code 0 when all pass.

Most of the time goes into the headers, so sources of one folder and one command are read as one, a batch at a time. Two
sources may use one name, so nothing that a batch shows counts: whom it blames is looked at again, apart, in the end alone.

    clang_tidy.py --build build/dev [--jobs N] [FOLDER ...]
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TOOL = "clang-tidy-19"
BATCH_FILES = 12


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


class Source:
    """A file of the build: what it is compiled with, and the stamp that remembers that it passed."""

    def __init__(self, entry, stamp):
        self.file, self.stamp = entry["file"], stamp
        words = shlex.split(entry["command"])
        compiler = next(at for at, word in enumerate(words) if "clang++" in word)
        self.flags = tuple(words[compiler + 1 : words.index("-o")])
        self.group = (os.path.dirname(self.file), self.flags)


def run_tool(options, build):
    return subprocess.run([TOOL, "-quiet", *options], cwd=build, capture_output=True, text=True, check=False)


def check_alone(source, build):
    """The findings of one file as text, empty when there are none."""
    done = run_tool(["-p", ".", source.file], build)
    if done.returncode == 0:
        source.stamp.touch()
        return ""
    # The reasons of a crash or of a wrong option are on the other stream.
    return (done.stdout + ("" if done.returncode == 1 else done.stderr)).strip() or f"{source.file}: {TOOL} failed"


def filter_of(root):
    """What is reported of a batch: the headers that the rules name, and every source in it."""
    rules = (root / ".clang-tidy").read_text(encoding="utf-8")
    return re.search("^HeaderFilterRegex: '(.*)'$", rules, re.MULTILINE)[1] + f"|^{re.escape(str(root))}/.*\\.cc$"


def blamed_together(batch, root, build):
    """The files of which something is said when the batch is read as one; the build has the compiler's own warnings."""
    with tempfile.TemporaryDirectory() as scratch:
        whole, overlay = pathlib.Path(scratch, "whole.cc"), pathlib.Path(scratch, "overlay.yaml")
        lines = (f'#include "{source.file}"  // NOLINT(bugprone-suspicious-include)\n' for source in batch)
        whole.write_text("".join(lines), encoding="utf-8")
        # The batch stands beside its files in name, so that the rules of their folder hold.
        name = os.path.join(os.path.dirname(batch[0].file), "read_as_one.cc")
        file = {"type": "file", "name": name, "external-contents": str(whole)}
        overlay.write_text(json.dumps({"version": 0, "use-external-names": False, "roots": [file]}), encoding="utf-8")
        options = [f"--vfsoverlay={overlay}", f"--header-filter={filter_of(root)}", name]
        done = run_tool([*options, "--", *batch[0].flags, "-w"], build)
    if done.returncode == 0:
        return []
    named = set(re.findall(r"^(/[^:\n]+):\d+:\d+: error:", done.stdout, re.MULTILINE))
    return [source for source in batch if source.file in named] or batch


def check(batch, root, build):
    """The findings of each file that has any."""
    if len(batch) == 1:
        findings = check_alone(batch[0], build)
        return [findings] if findings else []
    blamed = blamed_together(batch, root, build)
    if not blamed:
        for source in batch:
            source.stamp.touch()
        return []
    if len(blamed) == len(batch):
        blamed = batch[len(batch) // 2 :]
    others = [source for source in batch if source not in blamed]
    return check(others, root, build) + check(blamed, root, build)


def in_batches(sources):
    groups = {}
    for source in sources:
        groups.setdefault(source.group, []).append(source)
    return [group[at : at + BATCH_FILES] for group in groups.values() for at in range(0, len(group), BATCH_FILES)]


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
            stale.append(Source(entry, stamp))
    failed, looked_at = 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {pool.submit(check, batch, root, args.build): len(batch) for batch in in_batches(stale)}
        for run in concurrent.futures.as_completed(runs):
            for findings in run.result():
                failed += 1
                print(findings, flush=True)
            looked_at += runs[run]
            print(f"clang-tidy: {looked_at} of {len(stale)}", flush=True)
    print(f"clang-tidy: {len(ours)} files, {len(ours) - len(stale)} unchanged, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
