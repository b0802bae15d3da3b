"""What clang_tidy.py finds when it reads several files as one: no less, and nothing that is only due to that."""

import json
import pathlib
import tempfile
import unittest

import clang_tidy

RULES = pathlib.Path(__file__).resolve().parents[2] / ".clang-tidy"
# Two files may have this, as nobody outside sees it; together they do not compile.
TWIN = "namespace { int Twin() { return 1; } }\n"


def check(files):
    """The findings over a batch of `files`, name to text, and the names of those remembered as passed."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "tree").resolve()
        (root / "base").mkdir(parents=True)
        (root / ".clang-tidy").write_text(RULES.read_text(encoding="utf-8"), encoding="utf-8")
        batch = []
        for name, text in files.items():
            path = root / "base" / name
            path.write_text(text, encoding="utf-8")
            if name.endswith(".cc"):
                entry = {"file": str(path), "command": f"clang++-19 -I{root} -std=c++20 -o {name}.o -c {path}"}
                batch.append(clang_tidy.Source(entry, root / f"{name}.stamp"))
        entries = [{"directory": str(root), "file": s.file, "arguments": ["clang++", *s.flags, s.file]} for s in batch]
        (root / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
        found = clang_tidy.check(batch, root, root)
        return found, sorted(path.name.removesuffix(".stamp") for path in root.glob("*.stamp"))


class Batches(unittest.TestCase):
    def test_clean_files_pass_together(self):
        found, passed = check({"a.cc": "int A() { return 1; }\n", "b.cc": "int B() { return 2; }\n"})
        self.assertEqual(([], ["a.cc", "b.cc"]), (found, passed))

    def test_twins_of_two_files_are_no_finding(self):
        found, passed = check({name: TWIN + f"int {name[0].upper()}() {{ return Twin(); }}\n" for name in ("a.cc", "b.cc", "c.cc")})
        self.assertEqual(([], ["a.cc", "b.cc", "c.cc"]), (found, passed))

    def test_a_fault_in_one_file_is_found_and_only_it_is_not_remembered(self):
        found, passed = check({"a.cc": TWIN, "b.cc": TWIN + "int B(int Bad) { return Bad; }\n", "c.cc": "int C() { return 3; }\n"})
        self.assertEqual(1, len(found))
        self.assertIn("base/b.cc:2:11: error: invalid case style for parameter 'Bad'", found[0])
        self.assertEqual(["a.cc", "c.cc"], passed)

    def test_a_fault_in_a_header_is_found(self):
        found, passed = check({"a.h": "inline int* Null() { return 0; }\n", "a.cc": '#include "base/a.h"\n', "b.cc": "\n"})
        self.assertEqual(1, len(found))
        self.assertIn("base/a.h:1:29: error: use nullptr", found[0])
        self.assertEqual(["b.cc"], passed)

    def test_files_of_other_flags_are_no_batch(self):
        entries = [{"file": f"/x/{name}.cc", "command": f"clang++ {flag} -o {name}.o -c /x/{name}.cc"}
                   for name, flag in (("a", "-O1"), ("b", "-O2"), ("c", "-O1"))]
        batches = clang_tidy.in_batches([clang_tidy.Source(entry, None) for entry in entries])
        self.assertEqual([["/x/a.cc", "/x/c.cc"], ["/x/b.cc"]], [[s.file for s in batch] for batch in batches])


if __name__ == "__main__":
    unittest.main()
