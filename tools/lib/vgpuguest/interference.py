"""What the host's other work took from the soft GPU: the soft GPU runs on the CPU, so a host that gives its executors no core slows it
down, while the VF's time on the GPU goes on. Read from the kernel's own account of how long each thread waited for a core."""
import pathlib


def _executors(vgpud_pid):
    """{process id: VF name} of the executors of a vgpud."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        if parent == vgpud_pid and words[0].endswith(b"vgpud-exec") and b"--vf" in words:
            found[int(entry.name)] = words[words.index(b"--vf") + 1].decode()
    return found


def waited_for_a_core(vgpud_pid):
    """{VF name: ns that the threads of its executors were ready to run and had no core, since their start}."""
    waited = {}
    for pid, vf in _executors(vgpud_pid).items():
        for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                waited[vf] = waited.get(vf, 0) + int(thread.read_text().split()[1])
            except (OSError, IndexError, ValueError):
                continue  # it ended, or this kernel keeps no such account
    return waited
