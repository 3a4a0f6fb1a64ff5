# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster on this machine, of Debian's packages: munged, MariaDB, slurmdbd, slurmctld and a slurmd and a vgpud per virtual node,
everything in one directory and on ports of its own. Needs root."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tools" / "lib"))
sys.path.insert(0, str(REPO / "tests" / "restart"))

import bed  # noqa: E402
from vgpuguest import paths, process  # noqa: E402

NEEDED = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "mariadb-install-db", "sbatch", "sacct", "sacctmgr")
PACKAGES = "slurmctld slurmd slurmdbd slurm-client munge mariadb-server libslurm-dev"
SCRIPTS = ("account", "common.sh", "epilog", "node-start", "prolog", "sweep")
VFS_PER_NODE = 4
PROFILE = f"1/{VFS_PER_NODE}"

_CONF = """\
ClusterName=vgpud
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket,cred_expire=20
SlurmUser=root
SlurmdUser=root
StateSaveLocation={dir}/ctld
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/run/slurmctld.pid
SlurmdPidFile={dir}/run/%n.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={dir}/munge/socket
AccountingStorageTRES=gres/gpu
ReturnToService=2
SlurmdTimeout=120
KillWait=5
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PrologFlags=Alloc
Prolog={dir}/bin/prolog
Epilog={dir}/bin/epilog
HealthCheckProgram={dir}/bin/sweep
HealthCheckInterval=10
PlugStackConfig={dir}/etc/plugstack.conf
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first_port}-{last_port}] CPUs=16 RealMemory=16000 Gres=gpu:vgpud:{vfs}
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 MaxTime=10
PartitionName=high Nodes=ALL PriorityTier=2 MaxTime=10
"""

_DBD = """\
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
LogFile={dir}/log/slurmdbd.log
PidFile={dir}/run/slurmdbd.pid
"""


def missing():
    """Why there can be no cluster here, or ""."""
    if os.geteuid() != 0:
        return "slurmd and its prologs run as root, and this is not root"
    programs = [name for name in NEEDED if shutil.which(name) is None]
    if programs:
        return f"not installed: {' '.join(programs)} (apt-get install {PACKAGES})"
    if not plugin().exists():
        return f"the SPANK plugin is not built (libslurm-dev): {plugin()}"
    return ""


def plugin():
    return paths.BUILD / "integrations" / "vgpud_spank.so"


def _free_ports(count):
    """So many in a row, free just now."""
    for first in range(20000, 60000, 64):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(contextlib.closing(socket.socket())).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no free ports")


# What Slurm calls: it forgets what scripts say that end well.
_SCRIPT = """\
#!/bin/sh
exec 2>>{dir}/log/scripts-$SLURMD_NODENAME.log
echo "$(date +%T.%3N) {name} of job $SLURM_JOB_ID begins: numbers $SLURM_JOB_GPUS" >&2
VGPUD_SLURM_ENV={dir}/etc/slurm.env {dir}/libexec/{name} "$@"
status=$?
echo "$(date +%T.%3N) {name} of job $SLURM_JOB_ID ends: $status" >&2
exit $status
"""


class Cluster:
    def __init__(self, directory, nodes=4):
        self.dir = directory
        self.nodes = [f"n{number + 1}" for number in range(nodes)]
        ports = _free_ports(nodes + 2)
        self.names = {"dir": directory, "host": socket.gethostname().split(".")[0], "ctld_port": ports, "dbd_port": ports + 1,
                      "first_port": ports + 2, "last_port": ports + nodes + 1, "nodes": nodes, "vfs": VFS_PER_NODE}
        self.conf = os.path.join(directory, "etc", "slurm.conf")
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "SLURM_CONF": self.conf,
                            "MYSQL_UNIX_PORT": os.path.join(directory, "db", "socket")}
        self.vgpuds, self.children = {}, {}

    def _write(self, name, text, mode=0o644):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def _install(self):
        """What jobs of any user can read, and the configuration."""
        os.chmod(self.dir, 0o755)
        for name in ("bin", "etc", "lib", "libexec", "log", "run", "ctld", "spool", "results", "munge", "db", "vf", "vgpu-spool"):
            os.mkdir(os.path.join(self.dir, name))
        os.chmod(os.path.join(self.dir, "results"), 0o1777)
        for name in ("munge", "db"):
            shutil.chown(os.path.join(self.dir, name), {"munge": "munge", "db": "mysql"}[name])
        for library in filter(os.path.exists, (paths.SHIM, paths.NVML)):
            shutil.copy(library, os.path.join(self.dir, "lib"))
        shutil.copy(plugin(), os.path.join(self.dir, "lib"))
        for name in SCRIPTS:
            shutil.copy(REPO / "integrations" / "slurm" / name, os.path.join(self.dir, "libexec"))
        for name in ("prolog", "epilog", "sweep"):
            self._write(f"bin/{name}", _SCRIPT.format(name=name, **self.names), 0o755)
        self._write("etc/slurm.conf", _CONF.format(**self.names))
        self._write("etc/slurmdbd.conf", _DBD.format(**self.names), 0o600)
        self._write("etc/plugstack.conf", f"required {self.dir}/lib/vgpud_spank.so runtime={self.dir}/vf/%n lib={self.dir}/lib spool={self.dir}/vgpu-spool/%n "
                    f"prolog={self.dir}/bin/prolog\n")
        self._write("etc/slurm.env", f"export SLURM_CONF={self.conf}\nVGPUCTL='{paths.VGPUCTL}'\nVGPUD_RUNTIME_DIR={self.dir}/vf/$SLURMD_NODENAME\n"
                    f"spool={self.dir}/vgpu-spool/$SLURMD_NODENAME\ndefault_profile={PROFILE}\nseconds_to_wait=60\n", 0o600)
        # All nodes and all of Slurm share few processors: an executor that is to leave the GPU may wait seconds for one, and be killed for it.
        self._write("etc/vgpud.toml", '[gpu]\nsoft_gpu_vram = "1GiB"\npreempt_timeout_us = 10000000\n', 0o600)

    def spawn(self, name, *command, **options):
        environment = dict(self.environment, **options.pop("env", {}))
        options.setdefault("cwd", os.path.join(self.dir, "log"))  # where cores fall
        self.children[name] = process.spawn(command, os.path.join(self.dir, "log", f"{name}.out"), env=environment, **options)

    def run(self, *command, check=True, timeout=60):
        done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                              check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def _answers(self, *command):
        return subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False).returncode == 0

    def _start_accounting(self):
        directory = self.dir
        with open(os.path.join(directory, "munge", "key"), "wb") as file:
            file.write(os.urandom(128))
        os.chmod(file.name, 0o400)
        shutil.chown(file.name, "munge")
        self.spawn("munged", shutil.which("munged"), "--foreground", f"--socket={directory}/munge/socket",
                   f"--key-file={directory}/munge/key", f"--pid-file={directory}/munge/pid", f"--seed-file={directory}/munge/seed",
                   f"--log-file={directory}/munge/log", user="munge", group="munge", extra_groups=[])
        database = ["--no-defaults", f"--datadir={directory}/db/data", "--user=mysql"]
        self.run("mariadb-install-db", *database, "--auth-root-authentication-method=normal", "--skip-test-db", timeout=300)
        self.spawn("mariadbd", shutil.which("mariadbd"), *database, f"--socket={directory}/db/socket", "--skip-networking",
                   f"--pid-file={directory}/db/pid", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0")
        bed.wait_until(lambda: self._answers("mariadb-admin", "--no-defaults", f"--socket={directory}/db/socket", "-u", "root", "ping"),
                       "the database answers", 120)
        bed.wait_until(lambda: os.path.exists(f"{directory}/munge/socket"), "munged listens")
        self.spawn("slurmdbd", shutil.which("slurmdbd"), "-D")
        bed.wait_until(lambda: self._answers("sacctmgr", "-n", "list", "cluster"), "slurmdbd answers", 120)
        self.run("sacctmgr", "-i", "add", "cluster", "vgpud")

    def start_vgpud(self, node):
        vgpud = self.vgpuds.get(node)
        if vgpud is None:
            directory = os.path.join(self.dir, "vf", node)
            os.mkdir(directory)
            os.chmod(directory, 0o755)
            vgpud = self.vgpuds[node] = bed.SupervisedDaemon(directory, ["--config", f"{self.dir}/etc/vgpud.toml"])
        vgpud.start()

    def start_slurmctld(self):
        self.spawn("slurmctld", shutil.which("slurmctld"), "-D")

    def start_slurmd(self, node):
        environment = {"SLURMD_NODENAME": node, "VGPUD_SLURM_ENV": f"{self.dir}/etc/slurm.env"}
        subprocess.run([f"{self.dir}/libexec/node-start", str(VFS_PER_NODE), f"{self.dir}/dev"], check=True, timeout=120,
                       env=dict(self.environment, **environment), stdin=subprocess.DEVNULL)
        self.spawn(node, shutil.which("slurmd"), "-D", "-N", node)

    def start(self):
        self._install()
        self._start_accounting()
        for node in self.nodes:
            self.start_vgpud(node)
        gres = subprocess.run([paths.VGPUCTL, "--runtime-dir", self.vgpuds[self.nodes[0]].runtime_dir, "slurm", "gres.conf",
                               "--profile", PROFILE, "--files", f"{self.dir}/dev"], capture_output=True, text=True, check=True, timeout=60)
        self._write("etc/gres.conf", gres.stdout)
        self.start_slurmctld()
        bed.wait_until(self.ready, "slurmctld answers", 60)
        for node in self.nodes:
            self.start_slurmd(node)
        bed.wait_until(lambda: set(self.states().values()) == {"idle"}, "all nodes are idle", 120)

    def ready(self):
        return self._answers("scontrol", "ping") and self._answers("squeue", "-h")

    def states(self):
        """{node: state}; empty when slurmctld does not answer."""
        words = self.run("sinfo", "-h", "-N", "-p", "low", "-o", "%N %T", check=False).split()
        return dict(zip(words[::2], words[1::2]))

    def kill(self, name):
        """At once, as a crash. What it started lives on."""
        self.children[name].kill()
        self.children[name].wait()

    def processes(self):
        """[(pid, command line)] of all processes of this cluster that are not our children: they have its directory or its
        configuration in their words or their environment."""
        mark, ours = self.dir.encode(), {child.pid for child in self.children.values()} | {os.getpid()}
        ours |= {vgpud.process.pid for vgpud in self.vgpuds.values()}
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in ours:
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes()
                    if words and (mark in words or mark in (entry / "environ").read_bytes()):
                        found.append((int(entry.name), words.decode(errors="replace").replace("\0", " ")[:100]))
        return found

    def stop(self):
        for name in [*self.nodes, "slurmctld", "slurmdbd", "mariadbd", "munged"]:
            if name in self.children:
                process.stop(self.children[name], 20)
        for vgpud in self.vgpuds.values():
            if vgpud.process is not None and vgpud.process.poll() is None:
                vgpud.kill(signal.SIGTERM)
        # Nothing of it may outlive the test, whatever went wrong.
        for pid, _ in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def logs(self, lines=25):
        out = []
        for path in sorted(pathlib.Path(self.dir, "log").iterdir()):
            out.append(f"--- {path.name}\n{process.tail(path, lines)}")
        return "".join(out)


@contextlib.contextmanager
def cluster(nodes=4, keep=False):
    directory = f"/tmp/vgpu-slurm-{os.getpid()}"
    os.mkdir(directory)
    made = Cluster(directory, nodes)
    begin = time.monotonic()
    try:
        made.start()
        print(f"cluster of {nodes} nodes is up after {time.monotonic() - begin:.0f} s", flush=True)
        yield made
    except BaseException:
        print(made.logs(), flush=True)
        raise
    finally:
        made.stop()
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)
