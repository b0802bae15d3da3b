"""Each check of tidy.py on a small tree made for it: a tree that breaks the rule is found, one that keeps it is not."""

import pathlib
import tempfile
import tomllib
import unittest

import tidy

RULES = tomllib.loads(pathlib.Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))


def findings(check, files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tidy.run(folder, RULES, [check])


class Layers(unittest.TestCase):
    def test_scheduler_may_not_include_a_mutex(self):
        found = findings(tidy.check_layers, {"scheduler/a.h": '#include "base/runtime/mutex.h"\n'})
        self.assertIn("scheduler may not include base/runtime/mutex.h", found[0])

    def test_scheduler_may_include_base(self):
        self.assertEqual([], findings(tidy.check_layers, {"scheduler/a.h": '#include "base/ids.h"\n#include <vector>\n'}))

    def test_only_auth_may_include_the_minter(self):
        text = '#include "scheduler/namespace_minter.h"\n'
        self.assertEqual(1, len(findings(tidy.check_layers, {"server/core/pipeline.cc": text})))
        self.assertEqual([], findings(tidy.check_layers, {"server/core/auth.cc": text}))

    def test_core_knows_no_grpc(self):
        found = findings(tidy.check_layers, {"server/core/a.cc": "#include <grpcpp/grpcpp.h>\n"})
        self.assertIn("server/core may not include grpc", found[0])

    def test_generated_code_stops_at_the_doors(self):
        text = '#include "pagoda/v1/inference.pb.h"\n'
        self.assertEqual(1, len(findings(tidy.check_layers, {"engine/a.cc": text})))
        self.assertEqual([], findings(tidy.check_layers, {"server/grpc/a.cc": text}))

    def test_unknown_third_party_is_found(self):
        found = findings(tidy.check_layers, {"text/a.cc": "#include <boost/regex.hpp>\n"})
        self.assertIn("unknown include boost/regex.hpp", found[0])

    def test_a_folder_outside_the_table_is_found(self):
        self.assertIn("no layer", findings(tidy.check_layers, {"extra/a.cc": "int x;\n"})[0])


class Bans(unittest.TestCase):
    def check(self, name, line, count):
        self.assertEqual(count, len(findings(tidy.check_bans, {name: line + "\n"})), line)

    def test_each_ban_fires(self):
        for line in ("std::this_thread::sleep_for(x);", "int r = rand();", "auto* p = new Thing(1);", "delete p;",
                     "using namespace std;", "try { } catch (...) { }", "std::regex r;", "volatile int x;",
                     "// TODO later", "t.detach();", 'getenv("HOME");'):
            self.check("text/a.cc", line, 1)

    def test_words_in_strings_and_comments_are_free(self):
        self.check("text/a.cc", 'Fail("using namespace");  // never throw here', 0)

    def test_scheduler_has_no_clock(self):
        self.check("scheduler/a.cc", "std::chrono::seconds s;", 1)
        self.check("engine/a.cc", "std::chrono::seconds s;", 0)


class Shape(unittest.TestCase):
    def test_long_files_are_found(self):
        self.assertEqual(1, len(findings(tidy.check_sizes, {"base/a.h": "\n" * 251})))
        self.assertEqual([], findings(tidy.check_sizes, {"base/a.h": "\n" * 250}))

    def test_empty_names_are_found(self):
        self.assertEqual(1, len(findings(tidy.check_names, {"base/string_utils.h": ""})))

    def test_sources_are_listed_and_tested(self):
        files = {"base/CMakeLists.txt": "a.cc", "base/a.cc": "", "tests/base/a_test.cc": "",
                 "tests/base/CMakeLists.txt": "a_test.cc"}
        self.assertEqual([], findings(tidy.check_listed, files))
        del files["tests/base/a_test.cc"]
        self.assertIn("no tests/.../a_test.cc", findings(tidy.check_listed, files)[0])

    def test_six_equal_lines_are_found(self):
        body = "".join(f"  total += weigh(item_{i});\n" for i in range(6))
        self.assertEqual(1, len(findings(tidy.check_duplicates, {"base/a.cc": body, "text/b.cc": "int y;\n" + body})))
        self.assertEqual([], findings(tidy.check_duplicates, {"base/a.cc": body, "text/b.cc": body[:100]}))

    def test_dead_links_are_found(self):
        self.assertEqual(1, len(findings(tidy.check_markdown, {"docs/a.md": "see [b](b.md)\n"})))
        self.assertEqual([], findings(tidy.check_markdown, {"docs/a.md": "see [b](b.md)\n", "docs/b.md": ""}))
        self.assertEqual(1, len(findings(tidy.check_markdown, {"docs/a.md": "in `base/gone.h`\n"})))

    def test_unformatted_code_is_found(self):
        files = {".clang-format": "BasedOnStyle: Google\n", "base/a.h": "int  x ;\n"}
        self.assertEqual(1, len(findings(tidy.check_format, files)))


if __name__ == "__main__":
    unittest.main()
