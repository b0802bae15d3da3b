#!/usr/bin/env python3
"""Style and layering as a test: reads rules.toml beside it, checks the tree, prints one line per finding.

    tidy.py [--root DIR]      exit code 0 when clean, 1 with findings
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

CODE = {".h", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMMENT = re.compile(r'//.*$')
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
LINK = re.compile(r'\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)')
NAMED_FILE = re.compile(r'`((?:[\w.-]+/)+[\w.-]+\.(?:h|cc|cu|cuh|py|md|proto|txt|toml))`')
SKIPPED = {"build", ".git", ".cache"}


class Tree:
    """The files of the repository, each read once."""

    def __init__(self, root, rules):
        self.root = root
        self.rules = rules
        self.findings = []
        self.files = {}
        for path in sorted(root.rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and not SKIPPED.intersection(relative.parts):
                self.files[str(relative)] = path

    def text(self, name):
        return self.files[name].read_text(encoding="utf-8")

    def code(self):
        return [n for n in self.files if pathlib.PurePath(n).suffix in CODE]

    def report(self, name, line, message):
        self.findings.append(f"{name}:{line}: {message}")


def starts_with_any(name, prefixes):
    return any(p == "*" or name == p or name.startswith(p if p.endswith("/") else p + "/")
               or (("/" in p) and name.startswith(p)) for p in prefixes)


def layer_of(name, layers):
    fitting = [p for p in layers if name == p or name.startswith(p + "/") or name.startswith(p + ".")
               or name.startswith(p + "_")]
    return max(fitting, key=len) if fitting else None


def may_include(header, layer, allowed, layers):
    """Own folder, or an allowed one; a folder's sub-layers need their own entry."""
    target = layer_of(header, layers)
    for entry in [layer, *allowed]:
        if entry == "*" or header == entry or header.startswith(entry + "."):
            return True
        if target == entry and header.startswith(entry):
            return True
        if target is None and header.startswith(entry + "/"):
            return True
    return False


def check_layers(tree):
    layers = tree.rules["layers"]
    packages = tree.rules["third_party"]
    system = tuple(tree.rules["system"]["prefixes"])
    folders = {p.split("/")[0] for p in layers} | {"proto"}
    for name in tree.code():
        layer = layer_of(name, layers)
        if layer is None:
            tree.report(name, 1, "no layer: add its folder to the table in tests/tidy/rules.toml")
            continue
        rule = layers[layer]
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            header = match.group(2)
            if header.startswith("absl/") or header.startswith(system):
                continue
            if header.split("/")[0] in folders and "/" in header and match.group(1) == '"' \
                    and ".pb.h" not in header:
                if not may_include(header, layer, rule["ours"], layers):
                    tree.report(name, number, f"{layer} may not include {header}")
            elif ".pb.h" in header:
                if "proto" not in rule["ours"] and "*" not in rule["ours"]:
                    tree.report(name, number, f"{layer} may not include generated code ({header})")
            else:
                check_foreign(tree, (name, number), header, (layer, rule), packages)


def check_foreign(tree, place, header, layer_rule, packages):
    layer, rule = layer_rule
    package = next((p for prefix, p in packages.items() if header.startswith(prefix)), None)
    if package is None:
        if "/" in header or header.endswith(".h") and not re.match(r"^std\w+\.h$", header):
            tree.report(*place, f"unknown include {header}: add it to the table in rules.toml")
        return
    if package not in rule["third_party"] and "*" not in rule["third_party"]:
        tree.report(*place, f"{layer} may not include {package} ({header})")


def check_bans(tree):
    bans = [(re.compile(b["pattern"]), b) for b in tree.rules["bans"]]
    for name in tree.files:
        suffix = pathlib.PurePath(name).suffix
        if suffix not in CODE:
            continue
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            bare = STRING.sub('""', line)
            without_comment = COMMENT.sub("", bare)
            for pattern, ban in bans:
                if any(name.startswith(e) for e in ban["except"]):
                    continue
                if "only" in ban and not any(name.startswith(o) for o in ban["only"]):
                    continue
                in_comments = "TODO" in ban["pattern"] or "root|home" in ban["pattern"]
                if pattern.search(line if in_comments else without_comment):
                    tree.report(name, number, f"banned: {line.strip()[:60]!r}; use {ban['instead']}")


def check_sizes(tree):
    sizes = tree.rules["sizes"]
    for name in tree.files:
        limit = sizes.get(pathlib.PurePath(name).suffix.lstrip("."))
        if not isinstance(limit, int) or starts_with_any(name, sizes["except"]):
            continue
        lines = tree.text(name).count("\n")
        if lines > limit:
            tree.report(name, lines, f"{lines} lines; at most {limit}: split it")


def check_names(tree):
    banned = set(tree.rules["names"]["banned"])
    for name in tree.files:
        words = {w for part in pathlib.PurePath(name).parts for w in re.split(r"[_.\-]", part)}
        for word in sorted(words & banned):
            tree.report(name, 1, f"'{word}' in a file name says nothing: name what it is")


def check_listed(tree):
    """Every source stands in a CMakeLists.txt, every .cc has a test."""
    lists = " ".join(tree.text(n) for n in tree.files if n.endswith("CMakeLists.txt"))
    elsewhere = tree.rules["tests"].get("elsewhere", {})
    for name in tree.code():
        path = pathlib.PurePath(name)
        if not re.search(rf"(?<![\w]){re.escape(path.name)}(?![\w])", lists):
            tree.report(name, 1, "not in any CMakeLists.txt")
        if path.suffix != ".cc" or path.parts[0] in ("tests", "bench"):
            continue
        candidates = [n for n in tree.files if n.startswith("tests/")
                      and pathlib.PurePath(n).name == f"{path.stem}_test.cc"]
        if not candidates and elsewhere.get(name) not in tree.files:
            tree.report(name, 1, f"no tests/.../{path.stem}_test.cc, and no entry in [tests.elsewhere]")


def meaningful(line):
    text = line.strip()
    return bool(re.search(r"\w", text)) and not text.startswith(("#include", "//", "#pragma")) \
        and not text.startswith("namespace") and not text.startswith("}  //")


def check_duplicates(tree):
    rule = tree.rules["duplicates"]
    seen = {}
    for name in tree.code():
        if starts_with_any(name, rule["except"]):
            continue
        lines = [(i, l.strip()) for i, l in enumerate(tree.text(name).splitlines(), 1) if meaningful(l)]
        last_reported = 0
        for start in range(len(lines) - rule["lines"] + 1):
            window = tuple(text for _, text in lines[start:start + rule["lines"]])
            if is_table(window):
                continue
            number = lines[start][0]
            first = seen.setdefault(window, (name, number))
            if first != (name, number) and number > last_reported:
                tree.report(name, number, f"{rule['lines']} lines that stand at {first[0]}:{first[1]} too")
                last_reported = lines[start + rule["lines"] - 1][0]


def is_table(window):
    """Rows of data look alike on purpose."""
    return sum(bool(re.match(r"^[\d{}\"'.,\sx\-a-fA-F]+$", text)) for text in window) > len(window) // 2


def check_markdown(tree):
    for name in tree.files:
        if not name.endswith(".md"):
            continue
        folder = tree.files[name].parent
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            for target in LINK.findall(line):
                if "://" not in target and not target.startswith("mailto:") and not (folder / target).exists():
                    tree.report(name, number, f"link to {target}, which does not exist")
            for target in NAMED_FILE.findall(line):
                if not (tree.root / target).exists() and not (folder / target).exists():
                    tree.report(name, number, f"names {target}, which does not exist")


def check_format(tree):
    tool = shutil.which("clang-format-19")
    if tool is None:
        tree.report("scripts/setup", 1, "clang-format-19 is missing: run scripts/setup")
        return
    names = [str(tree.files[n]) for n in tree.code()]
    if not names:
        return
    done = subprocess.run([tool, "--dry-run", "--Werror", "--ferror-limit=1", *names],
                          capture_output=True, text=True, check=False)
    for line in done.stderr.splitlines():
        if "[-Wclang-format-violations]" in line:
            tree.findings.append(line.replace(str(tree.root) + "/", "").replace("error: ", ""))


CHECKS = [check_layers, check_bans, check_sizes, check_names, check_listed, check_duplicates, check_markdown, check_format]


def run(root, rules, checks=None):
    tree = Tree(pathlib.Path(root).resolve(), rules)
    for check in checks or CHECKS:
        check(tree)
    return tree.findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    with open(pathlib.Path(__file__).with_name("rules.toml"), "rb") as file:
        rules = tomllib.load(file)
    findings = run(root, rules)
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
