"""Objects compiled for one instruction class may define shared (weak) functions only in the namespace of that class: the
linker keeps one copy of any other for the whole program, and a machine without the instructions could be given that one.
Usage: instruction_class_symbols.py NM CLASS OBJECT..."""
import subprocess
import sys


def main():
    nm, instruction_class, objects = sys.argv[1], sys.argv[2], sys.argv[3:]
    listing = subprocess.run([nm, "-C", "--defined-only", *objects], check=True, capture_output=True, text=True).stdout
    symbols = [line.split(" ", 2)[1:] for line in listing.splitlines() if len(line.split(" ", 2)) == 3]
    if not any("::Table()" in name for _, name in symbols):
        sys.exit("no kernel table among the symbols: wrong objects?")
    own = f"pagoda::kernels::cpu::{instruction_class}::"
    foreign = [name for kind, name in symbols if kind in "WVu" and own not in name]
    if foreign:
        sys.exit("shared functions outside " + own + ":\n  " + "\n  ".join(foreign))


if __name__ == "__main__":
    main()
