#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the lists in docs/ with the tree: folders, what they may include, namespaces, kinds of tests, pages, links, anchors, the
port of the metrics, environment variables, who uses which library, what a weight becomes and the requests of the control
API.

usage: check_pages.py [REPO_ROOT]          exit 0 clean, 1 with one line per difference
       check_pages.py --rows [REPO_ROOT]   the rows "folder | may include" of docs/ARCHITECTURE.md as the tree has them
"""
import pathlib
import re
import sys

import check_includes
import check_style

MAP, FOLDERS, SOFT, INDEX = "docs/ARCHITECTURE.md", "docs/internals.md", "gpu/soft/README.md", "docs/README.md"
UAPI = "guest-driver-shim/include/uapi/"
NOT_OURS = "nothing of ours"
LINK = re.compile(r"\]\(([^)\s]+)\)")
METRICS_UNIT = "vgpud/systemd/vgpud-metrics.socket"
LOCAL_PORT = re.compile(r"(?:127\.0\.0\.1|\[::1\]|localhost):(\d{4,5})\b")
NAMES_PORTS = (".md", ".cc", ".h", ".in", ".socket", ".service", ".toml", ".yml", ".yaml", ".json")
VARIABLES = "docs/environment.md"
DEPENDENCIES = "docs/dependencies.md"
API, ROUTES = "docs/api.md", ("vgpud/control/control.cc", "vgpud/control/config_routes.cc")
FORMS = "A weight, from a command line to the policy"
# What the first cell of a library's row begins with, and its headers.
HEADERS = {"libevent": "event2/", "nlohmann-json": "nlohmann/", "toml++": r"toml\+\+/", "CLI11": "CLI/", "SQLite": "sqlite3.h", "libxml2": "libxml/",
           "libvirt (optional)": "libvirt/", "gRPC": "grpcpp/", "libcurl": "curl/", "libslurm-dev": "slurm/", "libseccomp": "seccomp.h",
           "libpci": "pci/pci.h", "ncurses": "ncurses.h", "libcap": "sys/capability.h", "libzstd": "(?:zstd|lz4)"}
# In C++; the constants and helpers that name a variable, too.
READS = re.compile(r'(?:getenv|NumberInEnvironment|Asked)\("([A-Z_]+)"\)|kRuntimeDirVariable = "([A-Z_]+)"')
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def section(text, title):
    """The text below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def rows(text):
    """Cells of the table rows whose first cell is code."""
    for line in text.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("| ").split(" | ")]


def rows_of_any(text):
    """Cells of the table rows that have code in their last two."""
    return re.findall(r"^\| (.*) \| `([^`]*)` \| `([^`]*)` \|$", text, re.MULTILINE)


def short(room):
    return "uapi" if room == UAPI else room.rstrip("/")


def owner(folders, target):
    """The row of the map that has `target`; contracts stand for themselves."""
    if target in check_includes.CONTRACTS:
        return target
    return max((folder for folder in folders if target.startswith(folder)), key=len, default=target)


def may_include(folders, folder):
    """What the rooms in `folder` may include outside of it, as the map's cell says it."""
    inside = [allowed for room, allowed in check_includes.PRODUCT if owner(folders, room) == folder]
    found = {owner(folders, each) for allowed in inside for each in allowed}
    return ", ".join(sorted(short(each) for each in found if not each.startswith(folder) or each in folders and each != folder)) or NOT_OURS


def folder_rows(root):
    """The map's rows, and {folder: page} of every folder that a page describes."""
    table = {cells[0].strip("`"): cells for cells in rows(section((root / MAP).read_text(), "Folders"))}
    described = [(folder, MAP) for folder in table]
    described += [(cells[0].strip("`"), FOLDERS) for cells in rows(section((root / FOLDERS).read_text(), "Folders"))]
    described += [("gpu/soft/" + cells[0].strip("`"), SOFT) for cells in rows((root / SOFT).read_text()) if cells[0] in soft_cells()]
    return table, described


def soft_cells():
    return {f"`{room}/`" for room in check_includes.SOFT_ROOMS}


def wrong_folders(root):
    table, described = folder_rows(root)
    names = [folder for folder, _ in described]
    for folder, page in described:
        if names.count(folder) > 1:
            yield f"{page}: {folder} is described twice"
        if not (root / folder).is_dir():
            yield f"{page}: there is no folder {folder}"
    for room, _ in check_includes.PRODUCT:
        if room not in names:
            yield f"{FOLDERS}: {room} is in tools/check_includes.py and on no page"
    for folder, cells in table.items():
        wanted = may_include(table, folder)
        if cells[-1] != wanted:
            yield f"{MAP}: {folder} may include {wanted}; the page says {cells[-1]}"


def wrong_tests(root):
    there = {f"{path.name}/": path for path in (root / "tests").iterdir() if path.is_dir() and path.name[0].isalpha()}
    listed = {cells[0].strip("`"): cells[-1] for cells in rows(section((root / FOLDERS).read_text(), "Tests"))}
    for kind in sorted(there.keys() ^ listed.keys()):
        yield f"{FOLDERS}: tests/{kind} is {'not listed' if kind in there else 'listed and does not exist'}"
    for kind in sorted(there.keys() & listed.keys()):
        suites = {suite for file in there[kind].rglob("meson.build") for suite in re.findall(r"suite: '(\w+)'", file.read_text())}
        wanted = ", ".join(sorted(suites)) or "-"
        if listed[kind] != wanted:
            yield f"{FOLDERS}: the suites of tests/{kind} are {wanted}; the page says {listed[kind]}"


def wrong_namespaces(root):
    there = set()
    for _, folder_space in check_style.NAMESPACES:
        # A namespace inside the namespace of a folder, such as ws_proof, has no row of its own.
        parts = re.fullmatch(r"(vgpud::)\((.*)\)", folder_space)
        there |= {f"{parts[1]}{each}" for each in parts[2].split("|")} if parts else {folder_space.split("|")[0]}
    listed = {cells[0].strip("`") for cells in rows(section((root / FOLDERS).read_text(), "Namespaces"))}
    for space in sorted(there ^ listed):
        yield f"{FOLDERS}: namespace {space} is {'not listed' if space in there else 'listed and is in no row of tools/check_style.py'}"


def anchors(text):
    """The anchors of headings, as GitHub makes them."""
    for title in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", LINK.sub("]", title).lower()).replace(" ", "-")


def wrong_links(root, pages):
    texts = {page: (root / page).read_text() for page in pages}
    for page, text in texts.items():
        for link in LINK.findall(FENCE.sub("", text)):
            path, _, anchor = link.partition("#")
            if ":" in path:
                continue
            target = (root / page).parent.joinpath(path).resolve() if path else root / page
            name = target.relative_to(root).as_posix() if target.is_relative_to(root) else path
            if not target.exists():
                yield f"{page}: {link} leads nowhere"
            elif anchor and name in texts and anchor not in anchors(texts[name]):
                yield f"{page}: {name} has no heading for #{anchor}"


def wrong_index(root, pages):
    linked = {(root / INDEX).parent.joinpath(link.partition("#")[0]).resolve() for link in LINK.findall((root / INDEX).read_text())}
    for page in pages:
        if page.startswith("docs/") and page != INDEX and root / page not in linked:
            yield f"{INDEX} has no link to {page}"


def wrong_ports(root, names):
    """All pages, units and messages name the port of the socket unit: of this host's services, vgpud has one."""
    (unit_port,) = LOCAL_PORT.findall((root / METRICS_UNIT).read_text())
    for name in names:
        if not name.endswith(NAMES_PORTS) or name.startswith("tests/") or not (root / name).is_file():
            continue
        for number, line in enumerate((root / name).read_text(errors="replace").splitlines(), 1):
            for port in LOCAL_PORT.findall(line):
                if port != unit_port:
                    yield f"{name}:{number}: the metrics are at port {unit_port} ({METRICS_UNIT}), not {port}"


def wrong_variables(root, names):
    """Each variable that the product reads is on the page, and each of ours on the page is read somewhere."""
    page = (root / VARIABLES).read_text()
    sources = {name: (root / name).read_text(errors="replace") for name in names
               if name.endswith((".cc", ".c", ".h", ".py", ".sh")) or name.startswith(("tools/", "integrations/slurm/"))
               if not name.startswith(("tests/", "bench/", "tools/gpucheck/")) and not name.endswith(("meson.build", ".md")) and (root / name).is_file()}
    for name, text in sources.items():
        for variable in filter(None, (match[1] or match[2] for match in READS.finditer(text))):
            if f"`{variable}`" not in page:
                yield f"{VARIABLES} has no {variable}, which {name} reads"
    everything = "\n".join(sources.values())
    for variable in set(re.findall(r"`(VGPUD?_[A-Z_]+)`", page)):
        if everything.strip() and variable not in everything:
            yield f"{VARIABLES}: nothing reads {variable}"


def wrong_dependencies(root, names):
    """The cell "used in" of a library has the folders whose sources include it."""
    sources = {name: (root / name).read_text(errors="replace") for name in names
               if name.endswith((".cc", ".h", ".c")) and not name.startswith(("tests/", "bench/", "base/precompiled/")) and (root / name).is_file()}
    table = [line.strip("| ").split(" | ") for line in (root / DEPENDENCIES).read_text().splitlines() if line.startswith("| ")]
    for library, header in HEADERS.items():
        cell = next((cells[1] for cells in table if cells[0].startswith(library)), "")
        said = [word + "/" for word in cell.split(", ") if not word.startswith(("tests", "bench"))]
        users = {name for name, text in sources.items() if re.search(rf'^#include [<"]{header}', text, re.MULTILINE)}
        for name in sorted(user for user in users if not user.startswith(tuple(said))):
            yield f"{DEPENDENCIES}: {library} is used in {name}; the page says {cell or 'nothing'}"
        for folder in said:
            if users and not any(user.startswith(folder) for user in users):
                yield f"{DEPENDENCIES}: {library} is not used in {folder}"


def wrong_routes(root):
    """The page has one row for each request that vgpud takes, with its parameters."""
    tables = [(root / file).read_text() for file in ROUTES]
    if not any(tables):
        return
    served = {(method, "/metrics" if path == "kMetricsPath" else path.strip('"').replace("*", "NAME")): parameters.split()
              for method, path, parameters in re.findall(r'\{EVHTTP_REQ_(\w+), ("[^"]+"|kMetricsPath), &\w+(?:, "([^"]*)")?', tables[0])}
    served |= {(method, path): ["dry_run"] if dry == "true" else []
               for method, path, dry in re.findall(r'\{"(\w+)", "([^"]+)", &\w+, (true|false)\}', tables[1])}
    listed = {(method, path): re.findall(r"`(\w+)`", parameters)
              for method, path, parameters in re.findall(r"^\| `(\w+) ([^`]+)` \|([^|]*)\|", (root / API).read_text(), re.MULTILINE)}
    for method, path in sorted(served.keys() | listed.keys()):
        key = (method, path)
        if key not in listed or key not in served:
            yield f"{API}: {method} {path} is {'not listed' if key in served else 'listed, and vgpud does not take it'}"
        elif listed[key] != served[key]:
            yield f"{API}: the parameters of {method} {path} are {', '.join(served[key]) or 'none'}; the page says {', '.join(listed[key]) or 'none'}"


def wrong_forms(root):
    """The code in the table of what a weight becomes is in the files that the table names."""
    for _, file, code in rows_of_any(section((root / FOLDERS).read_text(), FORMS)):
        text = (root / file).read_text() if (root / file).is_file() else None
        # As clang-format may have broken it.
        if text is None or text and " ".join(code.split()) not in " ".join(text.split()):
            yield f"{FOLDERS}: {file} has no {code}"


def main():
    arguments = sys.argv[1:]
    print_rows = "--rows" in arguments
    root = pathlib.Path(next((each for each in arguments if each != "--rows"), ".")).resolve()
    if print_rows:
        table, _ = folder_rows(root)
        print("\n".join(f"{folder} | {may_include(table, folder)}" for folder in table))
        return 0
    if not (root / ".git").exists():
        print("not a git checkout: nothing to compare with")
        return 77
    names = check_style.tracked(root)
    pages = [name for name in names if name.endswith(".md")]
    found = [*wrong_ports(root, names), *wrong_variables(root, names), *wrong_dependencies(root, names), *wrong_forms(root), *wrong_routes(root), *wrong_folders(root), *wrong_tests(root), *wrong_namespaces(root), *wrong_index(root, pages), *wrong_links(root, pages)]
    print("\n".join(found) or f"{len(pages)} pages say what the tree has")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
