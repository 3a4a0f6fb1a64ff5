#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check_includes.py, check_sizes.py, check_style.py and check_pages.py find what they are for, in trees that are made for it.

usage: checkers_test.py REPO_ROOT
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1]) / "tools"
sys.path.insert(0, str(TOOLS))
import check_sizes  # noqa: E402
import check_style  # noqa: E402


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


# (source, does it leak?)
BRACED = [
    ("auto x = Pair{name, TRY(Find(name))};\n", True),
    ("Pair x{Make(),\n       TRY(Find())};\n", True),
    ("return Pipe{TRY(Above(read)), TRY(Above(write))};\n", True),
    ("Pair x{TRY(Find(name)), {}};\n", False),
    ("if (found) {\n  x = a, y = b;\n  return TRY(Find());\n}\n", False),
]


def check_braces(_):
    for source, leaks in BRACED:
        assert (check_style.LEAKS.search(source) is not None) == leaks, source


# (page, what is replaced, by what, what check_pages.py says then)
WRONG_PAGES = [
    ("docs/ARCHITECTURE.md", "accounts; pure: no clock, I/O or threads | base |", "accounts; pure | base, vfio |", "docs/ARCHITECTURE.md: sched/ may include base; the page says base, vfio"),
    ("docs/internals.md", "| `vgpud/state/` |", "| `vgpud/host/` |", "docs/internals.md: vgpud/state/ is in tools/check_includes.py and on no page"),
    ("docs/internals.md", "| `vgpud/state/` |", "| `vgpud/host/` |", "docs/internals.md: vgpud/host/ is described twice"),
    ("docs/internals.md", "| `vm/` |", "| `vms/` |", "docs/internals.md: tests/vm/ is not listed"),
    ("docs/internals.md", "| libvirtd, vm |", "| vm |", "docs/internals.md: the suites of tests/vm/ are libvirtd, vm; the page says vm"),
    ("docs/internals.md", "| `vgpud::rm` |", "| `vgpud::rn` |", "docs/internals.md: namespace vgpud::rm is not listed"),
    ("docs/configuration.md", "127.0.0.1:9477", "127.0.0.1:9464",
     "docs/configuration.md:9: the metrics are at port 9477 (vgpud/systemd/vgpud-metrics.socket), not 9464"),
    ("docs/internals.md", "| `tools/vgpuctl/changes.cc` |", "| `tools/vgpuctl/change.cc` |",
     "docs/internals.md: tools/vgpuctl/change.cc has no body[knob.field] = *value;"),
    ("docs/README.md", "(gpus.md)", "(memory.md)", "docs/README.md has no link to docs/gpus.md"),
    ("docs/README.md", "(gpus.md)", "(gpuz.md)", "docs/README.md: gpuz.md leads nowhere"),
    ("docs/README.md", "#adding-a-policy", "#adding-a-polity", "docs/README.md: docs/scheduling.md has no heading for #adding-a-polity"),
]


def check_pages(root):
    def said():
        subprocess.run(["git", "-C", root, "add", "-A"], check=True)
        return run("check_pages.py", root)
    if not (TOOLS.parent / ".git").exists():
        print("not a git checkout: check_pages.py was not tried")
        return
    # The pages and the names of the tree, without its sources.
    tracked = subprocess.run(["git", "-C", TOOLS.parent, "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
    for name in tracked:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith((".md", ".socket", "meson.build")):
            shutil.copy(TOOLS.parent / name, root / name)
        else:
            (root / name).touch()
    subprocess.run(["git", "init", "-q", root], check=True)
    code, text = said()
    assert code == 0, text
    for page, old, new, wanted in WRONG_PAGES:
        right = (root / page).read_text()
        assert right.count(old) == 1, f"{page} has {right.count(old)} times {old!r}"
        (root / page).write_text(right.replace(old, new))
        code, text = said()
        assert code == 1 and wanted in text.splitlines(), f"{wanted}\n{text}"
        (root / page).write_text(right)
    (root / "vgpud/control/control.cc").write_text('{EVHTTP_REQ_GET, "/v1/vfs", &ListVfs, "all"},\n{EVHTTP_REQ_POST, "/v1/vfs/*/nap", &Nap},')
    code, text = said()
    for wanted in ("the parameters of GET /v1/vfs are all; the page says none", "POST /v1/vfs/NAME/nap is not listed",
                   "GET /metrics is listed, and vgpud does not take it"):
        assert code == 1 and f"docs/api.md: {wanted}" in text.splitlines(), text
    (root / "base/log.cc").write_text('#include <sqlite3.h>\ngetenv("VGPUD_NEW");')
    code, text = said()
    assert code == 1 and "docs/dependencies.md: SQLite is used in base/log.cc; the page says vgpud/history" in text.splitlines(), text
    assert "docs/dependencies.md: SQLite is not used in vgpud/history/" in text.splitlines(), text
    assert code == 1 and "docs/environment.md has no VGPUD_NEW, which base/log.cc reads" in text.splitlines(), text
    assert "docs/environment.md: nothing reads VGPU_TRACE" in text.splitlines(), text


def main():
    for check in (check_cycles, check_classes, check_braces, check_pages):
        with tempfile.TemporaryDirectory() as root:
            check(pathlib.Path(root))
    print("the checkers find what they are for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
