#!/usr/bin/env python3
"""scripts/quickstart as a newcomer meets it, over programs that are built already and without a network.

    quickstart_test.py --server build/dev/server/pagoda-server --pagoda build/dev/client/pagoda

The script runs in a copy of its checkout in which nothing is installed, built or fetched: the first two succeed at once, the
last fails as it does without a network.
"""

import argparse
import os
import pathlib
import pty
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 120  # so that a fault cannot hang the suite; nothing depends on it
programs = None


def checkout(folder):
    """A folder in which scripts/quickstart finds what it needs."""
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/quickstart", folder / "scripts/quickstart")
    for name, code in (("setup", 0), ("build", 0), ("fetch-model", 1)):
        stub = folder / "scripts" / name
        stub.write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
        stub.chmod(0o755)
    for place, program in (("server/pagoda-server", programs.server), ("client/pagoda", programs.pagoda)):
        link = folder / "build/release" / place
        link.parent.mkdir(parents=True)
        link.symlink_to(program.resolve())
    (folder / "models").mkdir()
    (folder / "models/tiny").symlink_to(ROOT / "models/tiny")
    return folder


class Quickstart(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = checkout(pathlib.Path(scratch.name).resolve())
        self.script = str(self.folder / "scripts/quickstart")
        # A development build poisons its whole pool, which takes longer than all the rest.
        self.environment = {**os.environ, "PAGODA_KV_CACHE_MEMORY": "16MiB", "PAGODA_THREADS": "1"}

    def run_once(self, *arguments, cwd="/"):
        return subprocess.run([self.script, "--once", *arguments], cwd=cwd, env=self.environment, capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)

    def test_without_a_network_the_shipped_model_answers_and_the_script_says_so(self):
        done = self.run_once()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("falling back to models/tiny", done.stderr)
        self.assertRegex(done.stdout, r"> Tell me a story.*\n.*Mira")
        self.assertRegex(done.stderr, r"\[(stop|length): \d+ prompt tokens .* generated; .* seed \d+\]")
        self.assertIn("What to try next", done.stdout)

    def test_a_cut_model_ends_at_once_with_the_servers_own_error(self):
        cut = self.folder / "cut.gguf"
        cut.write_bytes(b"GGUF\x03\x00\x00\x00")
        done = self.run_once("--model", str(cut))
        self.assertEqual(done.returncode, 1)
        self.assertIn("error", done.stderr)
        self.assertIn("cut.gguf", done.stderr)
        self.assertNotIn("start pagoda-server", done.stderr + done.stdout)

    def test_a_model_is_named_from_where_the_caller_stands(self):
        done = self.run_once("--model", "tiny", cwd=self.folder / "models")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Mira", done.stdout)

    def test_a_model_that_is_not_there_is_named(self):
        done = self.run_once("--model", "nowhere.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no nowhere.gguf", done.stderr)

    def test_ctrl_c_lets_the_replies_of_others_end(self):
        script, terminal = pty.fork()
        if script == 0:
            os.execve(self.script, [self.script], self.environment)
        shown = b""
        while b"Serving until Ctrl-C" not in shown:
            shown += os.read(terminal, 4096)
        server = re.search(rb"the server is at ([\d.:]+)\)", shown).group(1).decode()
        command = [str(programs.pagoda), "generate", "--server", server, "--prompt", "Once upon a time", "--max-tokens", "400",
                   "--ignore-eos", "--temperature", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
            first = client.stdout.read(1)  # the reply runs
            os.write(terminal, b"\x03")
            out, errors = client.communicate(timeout=LIMIT_S)
        _, status = os.waitpid(script, 0)
        self.assertEqual(client.returncode, 0, errors)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertGreater(len(first + out), 400)


def main():
    global programs
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True, type=pathlib.Path)
    parser.add_argument("--pagoda", required=True, type=pathlib.Path)
    programs = parser.parse_args()
    unittest.main(argv=["quickstart_test"])


if __name__ == "__main__":
    main()
