# SPDX-License-Identifier: Apache-2.0
"""A Debian 13 system with systemd as process 1 and vgpud installed, in an emulated machine: a host for VFs.

The system is made once, from the machine's own Debian archive, and kept in .cache/systemd; what is installed in it is
new for each test.
"""
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tools" / "lib"))

from vgpuguest import guest, paths, process  # noqa: E402
from vgpuguest.accel import accel_arguments  # noqa: E402
from vgpuguest.paths import ToolError  # noqa: E402

SUITE = "trixie"
CACHE = paths.CACHE / "systemd"
PACKAGES = ("systemd", "systemd-sysv", "udev", "dbus", "kmod", "procps", "libstdc++6", "python3-minimal", "libpython3-stdlib")
MODULES = ("virtio_pci", "virtio_blk", "ext4", "virtio_console")
BOOT_SECONDS = 400
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
APT = ("apt-get", "-qq", "-y", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends")
DISK = "3G"
# An emulated processor that also unpacks a package lets a program wait for longer than a real one does.
PATIENCE_US = 1_000_000
SETTINGS = f"[gpu]\npreempt_timeout_us = {PATIENCE_US}\n"
INIT = """#!/bin/sh
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do insmod "/modules/$module"; done < /modules/list
mount -t ext4 /dev/vda /root && exec switch_root /root /sbin/init
exec sh
"""
AGENT = """[Service]
ExecStart=/usr/local/sbin/vgpu-agent
Restart=always
[Install]
WantedBy=multi-user.target
"""


def missing():
    """Why there can be no such host here; empty: there can."""
    if os.geteuid() != 0:
        return "only root can make a system of Debian's packages"
    for tool, package in (("mmdebstrap", "mmdebstrap"), ("mke2fs", "e2fsprogs"), ("busybox", "busybox-static")):
        if shutil.which(tool) is None:
            return f"no {tool} (Debian: {package})"
    return ""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise ToolError(f"{' '.join(str(word) for word in command)}: {done.stdout[-2000:]}")
    return done.stdout


def archive():
    """Where this machine gets Debian's packages from."""
    targets = run("apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages")
    for line in targets.splitlines():
        codename, component, uri = line.split(" ", 2)
        if codename in ("bookworm", "trixie") and component == "main":
            return uri
    raise ToolError("apt on this machine names no Debian archive (apt-get indextargets)")


def needs(debs):
    """Names of the packages that these ask for, without themselves."""
    own = {pathlib.Path(deb).name.split("_")[0] for deb in debs}
    asked = ",".join(run("dpkg-deb", "-f", deb, field) for deb in debs for field in ("Pre-Depends", "Depends"))
    first = {re.match(r"[a-z0-9.+-]*", part.strip())[0] for part in asked.split(",")}
    return sorted(first - own - {""})


def make_system(suite, packages, path, variant="minbase"):
    """A packed system of Debian's packages, made once for each list of them; `path` is where, without its end."""
    key = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:10]
    packed = pathlib.Path(f"{path}-{key}.tar")
    if not packed.exists():
        packed.parent.mkdir(parents=True, exist_ok=True)
        part = packed.with_name(f"part-{os.getpid()}.tar")
        run("mmdebstrap", f"--variant={variant}", '--aptopt=APT::Install-Recommends "false"', f"--include={','.join(packages)}",
            suite, part, f"deb {archive()} {suite} main")
        part.rename(packed)
    return packed


def libraries(program):
    """Shared libraries of the program but those of the languages, which are the system's own."""
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", program), re.MULTILINE):
        if not re.match(r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux.*)\.so", name):
            yield name, path


def install(root):
    """What was built here, as `meson install` puts it, with the libraries of this machine that it needs."""
    run("meson", "install", "-C", paths.BUILD, "--no-rebuild", "--quiet", "--tags", "runtime,systemd",
        env=dict(os.environ, DESTDIR=str(root)))
    local = pathlib.Path(root, "usr/local")
    for directory in ("bin", "libexec/vgpud"):
        for program in (local / directory).iterdir():
            for name, path in libraries(program):
                # What the system has itself is newer, and its own programs need it so.
                if not (pathlib.Path(root) / "usr/lib/x86_64-linux-gnu" / name).exists():
                    shutil.copyfile(path, local / "lib" / name)
    run("ldconfig", "-r", root)
    for line in (local / "lib/sysusers.d/vgpud.conf").read_text().splitlines():
        if line.startswith("g "):
            run("chroot", root, "groupadd", "--system", line.split()[1])
    run("systemctl", f"--root={root}", "enable", "vgpud.service")


def installer(debs, later):
    """Installs the packages as an administrator does; those of `later` lie in /srv/later. For `booted`."""
    def install_packages(root):
        for target, files in (("packages", debs), ("later", later)):
            pathlib.Path(root, "srv", target).mkdir()
            for deb in files:
                shutil.copy(deb, pathlib.Path(root, "srv", target))
        # The system has no devices and no processes of its own yet.
        run("unshare", "--mount", "/bin/sh", "-c", 'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"',
            root, "env", "-i", f"PATH={PATH}", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *APT, "install",
            *(f"/srv/packages/{pathlib.Path(deb).name}" for deb in debs))
    return install_packages


def make_disk(root, disk):
    agent = pathlib.Path(root, "usr/local/sbin/vgpu-agent")
    run("gcc", "-O2", "-static", "-o", agent, REPO / "tools/guest/agent.c")
    pathlib.Path(root, "etc/systemd/system/vgpu-agent.service").write_text(AGENT)
    pathlib.Path(root, "etc/vgpud").mkdir()
    pathlib.Path(root, "etc/vgpud/vgpud.toml").write_text(SETTINGS)
    pathlib.Path(root, "etc/hostname").write_text("vgpu-host\n")
    pathlib.Path(root, "etc/machine-id").write_text("")
    pathlib.Path(root, "var/log/journal").mkdir(exist_ok=True)
    run("systemctl", f"--root={root}", "enable", "vgpu-agent.service")
    run("mke2fs", "-q", "-t", "ext4", "-d", root, disk, DISK)


def make_initrd(directory):
    root = pathlib.Path(directory, "initrd")
    for name in ("bin", "dev", "proc", "sys", "root", "modules"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    shutil.copy(busybox, root / "bin/busybox")
    for applet in ("sh", "mount", "insmod", "switch_root"):
        (root / "bin" / applet).symlink_to("busybox")
    tree = paths.kernel_dir(SUITE) / "tree"
    release = (paths.kernel_dir(SUITE) / "release").read_text().strip()
    names = []
    for module in MODULES:
        shown = run("modprobe", "-d", tree, "-S", release, "--show-depends", module)
        for path in re.findall(r"^insmod (\S+)", shown, re.MULTILINE):
            name = pathlib.Path(path).name.removesuffix(".xz")
            if name in names:
                continue
            names.append(name)
            data = subprocess.run(["xz", "-dc", path], check=True, capture_output=True).stdout \
                if path.endswith(".xz") else pathlib.Path(path).read_bytes()
            (root / "modules" / name).write_bytes(data)
    (root / "modules/list").write_text("".join(f"{name}\n" for name in names))
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    packed = pathlib.Path(directory, "initrd.img")
    run("/bin/sh", "-c", f"cd {root} && find . | cpio -o -H newc --quiet | gzip -1 > {packed}")
    return packed


class Host(guest.Guest):
    """The running machine."""

    def __init__(self, directory, qemu):
        super().__init__(directory)
        self.qemu = qemu

    def wait_until_up(self, after=""):
        """Until its agent answers, in another boot than `after`. The number of this boot."""
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline and self.qemu.poll() is None:
            with contextlib.suppress(ToolError, TimeoutError, OSError):
                boot = self.do("cat /proc/sys/kernel/random/boot_id").strip()
                if boot != after:
                    return boot
            time.sleep(0.2)
        raise ToolError(f"the machine does not come up\n{process.tail(os.path.join(self.directory, 'qemu.log'))}"
                        f"{process.tail(self.console)}")

    def shell(self, command, timeout=120, uid=0):
        return super().shell(f"export PATH={PATH}; {command}", timeout, uid)

    def do(self, command, timeout=120):
        """What a shell command says that must succeed."""
        code, said = self.shell(command, timeout)
        if code != 0:
            raise AssertionError(f"{command}: {code}: {said}")
        return said


@contextlib.contextmanager
def booted(prepare=install, also=()):
    """A new host, with Debian's packages `also`; `prepare` installs vgpud in its root directory."""
    with process.scratch_dir("vgpu-") as directory:
        root = os.path.join(directory, "root")
        os.mkdir(root)
        run("tar", "-C", root, "-xf", make_system(SUITE, (*PACKAGES, *also), CACHE / SUITE), "--exclude=./dev/*")
        prepare(root)
        disk = os.path.join(directory, "disk")
        make_disk(root, disk)
        shutil.rmtree(root)
        command = [paths.need(paths.QEMU, "QEMU"), "-name", "vgpu-host", "-machine", "q35", *accel_arguments(),
                   "-smp", "2", "-m", "1024", "-nodefaults", "-display", "none",
                   "-kernel", paths.need(paths.kernel_dir(SUITE) / "vmlinuz", "the guest kernel"),
                   "-initrd", make_initrd(directory),
                   "-append", "console=ttyS0 panic=-1 mitigations=off no_timer_check quiet systemd.show_status=0",
                   "-drive", f"file={disk},format=raw,if=virtio,cache=unsafe",
                   "-serial", f"file:{os.path.join(directory, 'console.log')}", "-device", "virtio-serial-pci"]
        for port in range(guest.COMMAND_PORTS):
            command += ["-chardev", f"socket,id=c{port},path={os.path.join(directory, f'cmd{port}')},server=on,wait=off",
                        "-device", f"virtserialport,chardev=c{port},name=vgpu.cmd.{port}"]
        qemu = process.spawn(command, os.path.join(directory, "qemu.log"))
        host = Host(directory, qemu)
        try:
            yield host
        finally:
            process.stop(qemu)
