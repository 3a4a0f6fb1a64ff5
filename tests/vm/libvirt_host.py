# SPDX-License-Identifier: Apache-2.0
"""A libvirtd of the test's own: in a mount namespace, so that neither this machine's domains nor its configuration are
touched, with the QEMU that tools/setup brings. Needs root and Debian's packages libvirt-daemon, libvirt-daemon-driver-qemu
and libvirt-clients; VGPUD_LIBVIRT=trixie takes the libvirt of that Debian instead, unpacked from the archive, and
what contrib/libvirt/build has built can run in its place."""
import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import time

import harness
from vgpuguest import paths, process

OWN_FOLDERS = ("/etc/libvirt", "/run/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt", "/run/vgpud", "/var/lib/vgpud")
HOOKS = "/etc/libvirt/hooks/qemu.d"
_INSIDE = "VGPUD_TEST_HAS_NAMESPACE"
# Debian's number for the user who runs QEMU.
QEMU_USER, QEMU_UID = "libvirt-qemu", 64055
_QEMU_CONF = """user = "{user}"
group = "{user}"
security_driver = "none"
remember_owner = 0
dynamic_ownership = {labels}
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
"""
# Where the libvirt of contrib/libvirt/build was built to lie.
BUILT = pathlib.Path("/opt/vgpud-libvirt")


def other():
    """The folder of the libvirt of another Debian; None: this machine's own. Fetches it where it is missing."""
    suite = os.environ.get("VGPUD_LIBVIRT")
    if not suite:
        return None
    folder = paths.CACHE / f"libvirt-{suite}"
    if not (folder / "libvirtd").exists():
        done = subprocess.run(["bash", "-ec", f"cache={paths.CACHE}; . tools/lib/archive.sh; . tools/lib/libvirt.sh; install_libvirt {suite}"],
                              cwd=paths.REPO, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            harness.skip(f"no libvirt of {suite} from Debian's archive: {done.stderr[-300:]}")
    return folder


def program(name):
    return str(other() / name) if other() else name


def enter(built=None):
    """Starts this program again with folders of its own; returns there. Skips the test where that can't be. `built`: the folder of
    a libvirt that runs in place of the machine's."""
    if os.environ.get(_INSIDE):
        for folder in OWN_FOLDERS:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", folder], check=True)
        if built:
            _put_in_place(built)
        _add_user()
        _hide_kvm()
        if other():
            subprocess.run(["mount", "--bind", other() / "prefix/usr/share/libvirt", "/usr/share/libvirt"], check=True)
        return
    if built and not os.path.exists(f"{built}/sbin/libvirtd"):
        harness.skip(f"no libvirt in {built}: contrib/libvirt/build makes it")
    for name in () if built else ("libvirtd", "virsh"):
        if shutil.which(program(name)) is None:
            harness.skip(f"no {name} here: apt-get install libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients")
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        harness.skip("no mount namespace of its own for libvirtd: run the tests as root")
    answer = subprocess.run([paths.VGPUCTL, "edit", "x", "--connect", "test:///default"], capture_output=True, text=True)
    if "built without libvirt" in answer.stderr:
        harness.skip("vgpuctl was built without libvirt: apt-get install libvirt-dev, then configure the build again")
    for folder in (*OWN_FOLDERS, *(["/usr/share/libvirt"] if other() else [])):
        os.makedirs(folder, exist_ok=True)
    done = subprocess.run(["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv],
                          env={**os.environ, _INSIDE: "yes"})
    sys.exit(done.returncode)


def _put_in_place(built):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", BUILT.parent], check=True)
    BUILT.mkdir()
    subprocess.run(["mount", "--bind", built, BUILT], check=True)
    os.environ["PATH"] = f"{BUILT}/sbin:{BUILT}/bin:{os.environ['PATH']}"


def _add_user():
    """libvirtd does not start without it; the package that makes it may be missing."""
    for file, line in (("/etc/passwd", f"{QEMU_USER}:x:{QEMU_UID}:{QEMU_UID}::/var/lib/libvirt:/bin/false"),
                       ("/etc/group", f"{QEMU_USER}:x:{QEMU_UID}:")):
        text = pathlib.Path(file).read_text()
        if f"\n{QEMU_USER}:" not in text:
            copy = pathlib.Path("/etc/libvirt", os.path.basename(file))
            copy.write_text(text.rstrip("\n") + "\n" + line + "\n")
            subprocess.run(["mount", "--bind", copy, file], check=True)


def _hide_kvm():
    """Where /dev/kvm is there but can't be used by QEMU's user, libvirtd asks QEMU again and again what it can do."""
    own = pathlib.Path("/run/libvirt/dev")
    own.mkdir()
    for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx"):
        (own / name).touch()
        subprocess.run(["mount", "--bind", f"/dev/{name}", own / name], check=True)
    for name in ("pts", "shm"):
        (own / name).mkdir()
        subprocess.run(["mount", "--rbind", f"/dev/{name}", own / name], check=True)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (own / name).symlink_to(f"/proc/self/fd/{number}")
    (own / "fd").symlink_to("/proc/self/fd")
    subprocess.run(["mount", "--rbind", own, "/dev"], check=True)


def uid_of(user):
    return pwd.getpwnam(user).pw_uid


def qemu_user():
    """Who runs QEMU: libvirt's own user, or root where that one can't reach the QEMU in this folder."""
    uid = uid_of(QEMU_USER)
    reached = subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", paths.QEMU, "--version"],
                             capture_output=True)
    return QEMU_USER if reached.returncode == 0 else "root"


class Libvirtd:
    """One that can be killed and started again."""
    log = "/var/log/libvirt/libvirtd.out"

    def __init__(self):
        self.process = None

    def start(self):
        """Returns when it serves."""
        self.process = process.spawn([program("libvirtd"), "--pid-file", "/run/libvirt/test.pid"], self.log)
        deadline = time.monotonic() + 60
        while virsh("list").returncode != 0:
            assert self.process.poll() is None and time.monotonic() < deadline, f"libvirtd does not serve\n{process.tail(self.log)}"
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def stop(self):
        if self.process.poll() is None:
            for name in virsh("list", "--name").stdout.split():
                virsh("destroy", name)
        process.stop(self.process)


@contextlib.contextmanager
def libvirtd(hook, labels=0):
    """Runs one; `hook`() is called before it starts. `labels` 1: it gives files to QEMU's user, and takes them back."""
    pathlib.Path("/etc/libvirt/qemu.conf").write_text(_QEMU_CONF.format(user=qemu_user(), labels=labels))
    pathlib.Path("/etc/libvirt/libvirtd.conf").write_text('auth_unix_rw = "none"\n')
    hook()
    daemon = Libvirtd()
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.stop()


@contextlib.contextmanager
def second_libvirtd():
    """One that is another host for libvirt, with the same hooks; its URI. Only while libvirtd() runs."""
    folder = pathlib.Path("/run/vgpud/second")
    folder.mkdir()
    shutil.copytree("/etc/libvirt", folder / "etc")
    (folder / "libvirtd.conf").write_text(f'auth_unix_rw = "none"\nunix_sock_dir = "{folder}"\n'
                                          'host_uuid = "5a7e3a70-0000-4000-8000-5a7e3a705a7e"\n')
    mounts = "".join(f"mount -t tmpfs -o mode=755 none {each}; " for each in OWN_FOLDERS if each.endswith("/libvirt"))
    script = (f"hostname second-host; {mounts} cp -a {folder}/etc/. /etc/libvirt/; "
              f"exec {program('libvirtd')} --config {folder}/libvirtd.conf --pid-file {folder}/pid")
    daemon = process.spawn(["unshare", "-m", "-u", "sh", "-ec", script], f"{folder}/log")
    uri = f"qemu+unix:///system?socket={folder}/libvirt-sock"
    try:
        deadline = time.monotonic() + 60
        while subprocess.run([program("virsh"), "-q", "-c", uri, "list"], capture_output=True).returncode != 0:
            assert daemon.poll() is None and time.monotonic() < deadline, f"no second libvirtd\n{process.tail(f'{folder}/log')}"
            time.sleep(0.05)
        yield uri
    finally:
        process.stop(daemon)
        shutil.rmtree(folder)


def virsh(*arguments, timeout=60):
    return subprocess.run([program("virsh"), "-q", "-c", "qemu:///system", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=timeout)
