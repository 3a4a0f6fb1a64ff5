#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check_includes.py and tools/check_sizes.py find what they are for, in trees that are made for it.

usage: checkers_test.py REPO_ROOT
"""
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1]) / "tools"
sys.path.insert(0, str(TOOLS))
import check_sizes  # noqa: E402


def run(tool, *arguments):
    done = subprocess.run([sys.executable, "-B", TOOLS / tool, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout


def tree(root, files):
    for name, includes in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f'#include "{each}"\n' for each in includes))


def check_cycles(root):
    files = {"vgpud/model/a.h": [], "vgpud/host/b.h": ["vgpud/model/a.h"], "vgpud/gpu/c.h": ["vgpud/host/b.h", "vgpud/model/a.h"],
             "vgpud/top.cc": ["vgpud/gpu/c.h"]}
    tree(root, files)
    code, text = run("check_includes.py", root)
    assert (code, text) == (0, "includes are clean\n"), text
    code, text = run("check_includes.py", "--picture", "vgpud/", root)
    assert text.splitlines() == [" 4  vgpud/       -> gpu/", " 3  gpu/         -> host/ model/", " 2  host/        -> model/",
                                 " 1  model/", "4 folders, 4 floors, 4 arrows, 0 of them up"], text
    # Allowed by no row, and a ring around a corner.
    tree(root, {"vgpud/model/a.h": ["vgpud/gpu/c.h"]})
    code, text = run("check_includes.py", root)
    assert code == 1 and 'vgpud/model/ must not include "vgpud/gpu/c.h"' in text, text
    assert "vgpud/gpu/ vgpud/host/ vgpud/model/ need each other: " in text, text
    assert 'vgpud/model/a.h includes "vgpud/gpu/c.h"' in text, text
    _, text = run("check_includes.py", "--picture", "vgpud/", root)
    assert "^" in text and ", 0 of them up" not in text, text
    _, text = run("check_includes.py", "--dot", "vgpud/", root)
    assert text.startswith("digraph {") and "[color=red]" in text, text


# (source, what is declared): functions beside accessors, and lines of those with a body in the class.
CLASSES = [
    ("class A {\n public:\n  A();\n  int x() const { return x_; }\n  void Do(int);\n  A(const A&) = delete;\n private:\n  int x_ = f(3);\n};",
     [("A", 2, 0)]),
    ("struct B {\n  std::function<void(int)> called;\n  int (*table)(int);\n  Lock mu_;\n  int y VGPUD_GUARDED_BY(mu_);\n  bool operator==(const B&) const;\n};",
     [("B", 1, 0)]),
    ("class C : public D {\n  enum class E { kOne };\n  struct F {\n    void G();\n  };\n  int Long() {\n    return 1;\n  }\n  virtual int One() { return 1; }\n};",
     [("C::F", 1, 0), ("C", 2, 4)]),
]


def check_classes(root):
    for source, wanted in CLASSES:
        found = list(check_sizes.declared(source))
        assert found == wanted, f"{source}\n{found} instead of {wanted}"
    (root / "x").mkdir()
    names = [f"F{n}" for n in range(check_sizes.MOST_CLASS_FUNCTIONS + 1)]
    (root / "x/many.h").write_text("class Many {\n" + "".join(f"  void {name}();\n" for name in names) + "};\n")
    lines = "  ++x_;\n" * (check_sizes.MOST_CLASS_LINES // 10)
    for part in range(12):
        body = "".join(f"void Long::F{part}() {{\n{lines}}}\n\n" if part < 11 else "")
        (root / f"x/long_{part}.cc").write_text(body)
    (root / "x/long.h").write_text("class Long {\n" + "".join(f"  void F{n}();\n" for n in range(11)) + "};\n")
    files = [path.relative_to(root) for path in sorted(root.glob("x/*"))]
    found = {name: sums for (_, name), sums in check_sizes.classes(root, [pathlib.PurePosixPath(path) for path in files]).items()}
    assert found["Many"] == [check_sizes.MOST_CLASS_FUNCTIONS + 1, 0], found
    assert found["Long"][1] > check_sizes.MOST_CLASS_LINES, found


def main():
    for check in (check_cycles, check_classes):
        with tempfile.TemporaryDirectory() as root:
            check(pathlib.Path(root))
    print("the checkers find what they are for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
