#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of plain CUDA programs on a real Slurm cluster of four virtual nodes on this machine (cluster.py), and what must hold for them:

every job gets its VFs and nothing else; beside others a VF has the share of the GPU that its weight promises; the GPU seconds in Slurm's
accounting are those that vgpud counted; what is preempted or queued again leaves nothing behind, nor does a slurmd, slurmctld or vgpud
that is killed in between; and no job is lost that Slurm does not call lost.

usage: run.py [JOBS] [--kills N] [--seed N] [--keep]
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import sys
import threading
import time

import cluster as clusters
import share_watch
from cluster import bed, paths, process

SKIPPED = 77
USERS = (65534, 5, 9, 13)   # nobody, games, news, proxy: Debian has them everywhere
WEIGHTS = (100, 100, 200, 300, 400)
LARGEST_ERROR = 3.0         # points of the GPU
LEAST_SECONDS = 1.0         # of the GPU, beside others: less says nothing about shares
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE", "REVOKED"}
# What Slurm says when it lost a job itself.
LOST = {"NODE_FAIL", "BOOT_FAIL"}
# And srun, of a step that it could not start as slurmd or slurmctld was killed just then.
STEP_LOST = {"slurmd": re.compile(r"srun: error: Task launch for StepId=\S+ failed on node \S+: Communication connection failure"),
             "slurmctld": re.compile(r"srun: error: Unable to confirm allocation for job \d+: Unexpected missing socket error")}
# How a program ends whose run Slurm ends, as it has another one.
ENDED_BY_SLURM = {0, -9, -15}
# What a slurmctld that was killed makes of a job whose start it had not written down yet: it starts it once more beside itself, and leaves the
# rest to the administrator, who is this program.
FORGOTTEN, HELD = "Duplicate jobid", "launch failed requeued held"


class Job:
    def __init__(self, rng, number):
        self.number, self.id = number, None
        self.nodes = 2 if rng.random() < 0.08 else 1
        self.vfs = rng.choice((1, 1, 1, 2, 3)) if self.nodes == 1 else 1
        self.weight = rng.choice(WEIGHTS)
        self.profile = rng.choice(("", "1/4", "1/8"))
        self.user = rng.choice(USERS)
        self.partition = "high" if rng.random() < 0.15 else "low"
        program = rng.choice(("meter", "meter", "meter", "vectoradd", "matmul"))
        self.command = paths.cuda_command(program)
        if program == "meter":
            self.command += ["--seconds", str(rng.choice((2, 4, 6)))]

    def vram(self, whole):
        return whole // int((self.profile or clusters.PROFILE).split("/")[1])

    def submit(self, cluster):
        words = ["sbatch", "--parsable", f"--uid={self.user}", f"--gid={self.user}", f"--nodes={self.nodes}", "--ntasks-per-node=1",
                 "--cpus-per-task=2", "--requeue", f"--partition={self.partition}", f"--gres=gpu:vgpud:{self.vfs}",
                 f"--vgpu-weight={self.weight}", f"--output={cluster.dir}/results/%j.out", "--open-mode=append", "--chdir=/"]
        if self.profile:
            words.append(f"--vgpu-profile={self.profile}")
        job = f"{cluster.dir}/bin/job"
        self.id = int(cluster.run(*words, job, f"{self.nodes}", *self.command).split(";")[0])
        return self.id


def prepare(cluster):
    """The script of all jobs, and programs that every user can read."""
    programs = pathlib.Path(cluster.dir, "programs")
    programs.mkdir(exist_ok=True)
    (programs / "payload.py").write_bytes((pathlib.Path(__file__).parent / "payload.py").read_bytes())
    for name in ("meter", "vectoradd", "matmul"):
        source = pathlib.Path(paths.cuda_command(name)[0])
        (programs / source.name).write_bytes(source.read_bytes())
        (programs / source.name).chmod(0o755)
    script = pathlib.Path(cluster.dir, "bin", "job")
    script.write_text(f"""#!/bin/sh
nodes=$1 program={programs}/$(basename "$2")
shift 2
launch=
[ "$nodes" = 1 ] || launch=srun
exec $launch sh -c 'exec python3 {programs}/payload.py {cluster.dir}/results {cluster.dir}/vf/$SLURMD_NODENAME "$@"' sh "$program" "$@"
""")
    script.chmod(0o755)


def queue(cluster):
    """{job: state} of those that have not ended."""
    return dict(line.split() for line in cluster.run("squeue", "-h", "-o", "%A %T").splitlines())


def accounts(cluster):
    """{job: {"states": of each run, "comments": of each run, "seconds": {node: GPU seconds of all runs}}} as sacct has it."""
    found = collections.defaultdict(lambda: {"states": [], "seconds": collections.defaultdict(float), "comments": []})
    for line in cluster.run("sacct", "-a", "-n", "-P", "-X", "-D", "-S", "now-1days", "-o", "jobid,state,admincomment").splitlines():
        job, state, comment = line.split("|", 2)
        found[int(job)]["states"].append(state.split()[0])
        found[int(job)]["comments"].append(comment)
        for node, seconds in re.findall(r"vgpu_seconds:([^ =]+)=([0-9.]+)", comment):
            found[int(job)]["seconds"][node] += float(seconds)
    return found


def reports(cluster):
    """{(node, job): [GPU seconds of each VF that it had there]} as vgpud's history has it."""
    found = collections.defaultdict(list)
    for node, vgpud in cluster.vgpuds.items():
        for day in vgpud.ctl("report", "--from", time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86400)), "--to",
                             time.strftime("%Y-%m-%d", time.gmtime()))["rows"]:
            match = re.fullmatch(r"slurm-(\d+)-\d+", day["name"])
            if match:
                found[node, int(match[1])].append(day["received_ns"] / 1e9)
    return found


class Killer:
    """Kills a daemon at a random moment, and starts it again."""

    def __init__(self, cluster, rng, kills):
        self.cluster, self.rng, self.left, self.done = cluster, rng, kills, collections.Counter()

    def one(self):
        self.left -= 1
        what = self.rng.choice(("slurmd", "slurmctld", "vgpud", "vgpud"))
        node = self.rng.choice(self.cluster.nodes)
        self.done[what] += 1
        if what == "vgpud":
            self.cluster.vgpuds[node].kill()
            self.cluster.start_vgpud(node)
        elif what == "slurmd":
            self.cluster.kill(node)
            self.cluster.start_slurmd(node)
        else:
            self.cluster.kill("slurmctld")
            self.cluster.start_slurmctld()
            bed.wait_until(self.cluster.ready, "slurmctld answers again", 120)


def step_without_prolog(cluster):
    """slurmd leaves the prolog out for a job that it has seen not long ago, and its VFs are ended by then: a step has them made."""
    node = cluster.nodes[0]
    vgpud = cluster.vgpuds[node]
    wishes = ("--vgpu-profile=1/8", "--vgpu-weight=250")
    cluster.run("salloc", "--no-shell", "-J", "bare", "-w", node, "--gres=gpu:vgpud:2", *wishes)
    job = cluster.run("squeue", "-h", "-n", "bare", "-o", "%A").strip()
    bed.wait_until(lambda: len(vgpud.names()) == 2, "an allocation has its VFs", 60)
    said = pathlib.Path(cluster.dir, "vgpu-spool", node, f"{job}.run")
    bed.wait_until(lambda: said.read_text().startswith("made "), "and its prolog has ended", 60)
    cluster.run("env", f"SLURM_JOB_ID={job}", f"SLURMD_NODENAME={node}", f"VGPUD_SLURM_RUN={said.read_text().split()[1]}",
                f"VGPUD_SLURM_ENV={cluster.dir}/etc/slurm.env", f"{cluster.dir}/libexec/epilog")
    if vgpud.names():
        return [f"an epilog ended not all of {vgpud.names()}"]
    program = f"{cluster.dir}/programs/{pathlib.Path(paths.cuda_command('vectoradd')[0]).name}"
    cluster.run("srun", f"--jobid={job}", *wishes, program, timeout=120)
    made = [(vgpud.show(name)["weight"], vgpud.show(name)["profile"]) for name in vgpud.names()]
    cluster.run("scancel", job)
    bed.wait_until(lambda: not vgpud.names(), "the allocation's VFs are ended", 60)
    return [] if made == [(250, "1/8")] * 2 else [f"a step without a prolog had the VFs {made}"]


def play(cluster, options, rng):
    jobs = [Job(rng, number) for number in range(options.jobs)]
    whole = 1 << 30
    watch = share_watch.Watch(cluster.vgpuds)
    problems, requeued, administrated, drained, hurried = [], 0, 0, set(), set()
    killer = Killer(cluster, rng, options.kills)
    begin = killed = time.monotonic()
    try:
        for job in jobs:
            job.submit(cluster)
        if options.kills:  # Slurm may forget what it has not written yet
            at = time.time()
            bed.wait_until(lambda: os.path.getmtime(f"{cluster.dir}/ctld/job_state") > at, "slurmctld has written the jobs down", 120)
        end = time.monotonic() + 60 + 12 * options.jobs
        while True:
            try:
                there = queue(cluster)
            except AssertionError:
                continue  # slurmctld is away just now
            if not there and not killer.left:
                break
            if time.monotonic() > end:
                problems.append(f"jobs that did not end: {there}")
                break
            for node, state in cluster.states().items():
                if "drain" in state and node not in drained:
                    why = cluster.run("sinfo", "-h", "-R", "-n", node, "-o", "%E", check=False).strip()
                    if killer.done["slurmctld"] and why == FORGOTTEN:
                        administrated += 1
                        cluster.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
                        continue
                    drained.add(node)
                    problems.append(f"{node} is {state}: {why}")
            if killer.done["slurmctld"]:
                for line in cluster.run("squeue", "-h", "-o", "%A %r", check=False).splitlines():
                    job, reason = line.split(" ", 1)
                    if reason == HELD:
                        administrated += 1
                        cluster.run("scontrol", "release", job, check=False)
            running = [job for job, state in there.items() if state == "RUNNING"]
            if running and requeued < options.jobs // 20:
                requeued += 1
                job = rng.choice(running)
                hurried.add(job)
                cluster.run("scontrol", "requeue", job, check=False)
            # Without the pause that slurmctld makes, as one that was killed forgets it: slurmd runs no prolog then.
            for job in [job for job in hurried if there.get(job) == "PENDING"]:
                hurried.remove(job)
                cluster.run("scontrol", "update", f"jobid={job}", "starttime=now", check=False)
            if killer.left and there:
                # At any moment; which one decides nothing.
                time.sleep(rng.uniform(0.1, 2.5))
                killer.one()
                killed = time.monotonic()
            else:
                time.sleep(1)
                killer.left = killer.left if there else 0
                # A slurmctld that was killed may not have written that a job ended. Told to read its configuration again it asks
                # the nodes at once, and not some minutes later.
                if killer.done and time.monotonic() > killed + 15:
                    killed = time.monotonic()
                    cluster.run("scontrol", "reconfigure", check=False)
    finally:
        watch.stop()
    print(f"{options.jobs} jobs in {time.monotonic() - begin:.0f} s; queued again by hand: {requeued}; killed: {dict(killer.done)}; "
          f"held or drained by Slurm and released: {administrated}", flush=True)
    return jobs, watch, problems + judge(cluster, jobs, whole, killer.done)


def judge(cluster, jobs, whole, killed):
    problems = []
    # The last epilogs may still be writing, and sweep does what killed ones did not, when it misses a job for the second time; what it writes it
    # looks at again.
    for node in cluster.nodes * 4:
        cluster.run("env", f"SLURMD_NODENAME={node}", f"{cluster.dir}/bin/sweep", timeout=120)
    states, counted = accounts(cluster), reports(cluster)
    results = collections.defaultdict(list)
    for path in pathlib.Path(cluster.dir, "results").glob("*.json"):
        seen = json.loads(path.read_text())
        results[seen["job"]].append(seen)
    totals = collections.Counter()
    for job in jobs:
        state = states[job.id]["states"][-1] if states[job.id]["states"] else "unknown to sacct"
        totals[state] += 1
        if state == "COMPLETED":
            forgotten = starts(cluster, job) > len(states[job.id]["states"])
            problems += wrong_results(job, results[job.id], whole, forgotten)
        elif state not in LOST:
            out = pathlib.Path(cluster.dir, "results", f"{job.id}.out")
            said = out.read_text() if out.exists() else "no output"
            if any(killed[what] and words.search(said) for what, words in STEP_LOST.items()):
                totals["step lost, says srun"] += 1
            else:
                problems.append(f"job {job.id} ({job.command}) is {state}: {said[-500:]}")
    problems += wrong_accounts(jobs, states, counted)
    print(f"states {dict(totals)}, runs that sacct knows {sum(len(states[job.id]['states']) for job in jobs)}")
    return problems


def starts(cluster, job):
    """How often slurmctld started the job, by its log: more often than it knows itself, when it was killed."""
    log = pathlib.Path(cluster.dir, "log", "slurmctld.log").read_text(errors="replace")
    return len(re.findall(rf"Allocate JobId={job.id} ", log))


def wrong_results(job, results, whole, forgotten):
    last = max((seen["restarts"] for seen in results), default=None)
    runs = [seen for seen in results if seen["restarts"] == last]
    count = len({seen["node"] for seen in runs})
    # A start that a killed slurmctld forgot has the same number as the next one.
    if count != job.nodes and not (count > job.nodes and forgotten):
        return [f"job {job.id} is COMPLETED, and {count} of its {job.nodes} tasks have written what they saw"]
    problems = []
    for seen in results:
        what = f"job {job.id} on {seen['node']}"
        if len(seen["devices"]) != job.vfs or len({uuid for uuid, _ in seen["devices"]}) != job.vfs:
            problems.append(f"{what} asked for {job.vfs} VFs and has {seen['devices']}")
        if any(abs(size - job.vram(whole)) > 0 for _, size in seen["devices"]):
            problems.append(f"{what} asked for {job.profile or clusters.PROFILE} and has {seen['devices']}")
        if seen["opened"]:
            problems.append(f"{what}, of user {seen['uid']}, could open {seen['opened']}")
        superseded = forgotten or seen["restarts"] != last
        if seen["uid"] != job.user or (any(seen["statuses"]) and not (superseded and ENDED_BY_SLURM.issuperset(seen["statuses"]))):
            problems.append(f"{what}: {seen}")
    return problems


def wrong_accounts(jobs, states, counted):
    problems, total, worst = [], 0.0, 0.0
    ours = {job.id for job in jobs}
    for (node, job), vfs in counted.items():
        if job not in ours:
            continue
        told, total = states[job]["seconds"].get(node), total + sum(vfs)
        if told is None:
            problems.append(f"job {job}: {sum(vfs):.3f} GPU seconds on {node}, none of them in sacct ({states[job]['states']})")
            continue
        worst = max(worst, abs(told - sum(vfs)))
        if abs(told - sum(vfs)) > 0.001 * len(vfs):  # sacct has milliseconds
            problems.append(f"job {job} on {node}: {told} GPU seconds in sacct, {vfs} in vgpud ({states[job]['states']}, "
                            f"{states[job]['comments']})")
    for job in ours:
        for node in states[job]["seconds"]:
            if (node, job) not in counted:
                problems.append(f"job {job}: GPU seconds on {node} in sacct, none in vgpud")
    print(f"GPU seconds {total:.3f} on {len(counted)} nodes of jobs; largest difference between sacct and vgpud {worst:.4f} s")
    return problems


def wrong_shares(jobs, watch):
    errors = watch.errors(LEAST_SECONDS)
    print(f"shares: {len(errors)} of {len(watch.seconds)} VFs had {LEAST_SECONDS:.0f} s of the GPU to share; "
          f"largest error {max(map(abs, errors.values()), default=0):.2f} points; {watch.stalled} of {watch.readings} readings were the host's fault")
    if watch.problem or not watch.readings:
        return [f"the counters could not be read: {watch.problem}"]
    return [f"{vf} on {node} had {error:+.2f} points beside others" for (node, vf), error in errors.items() if abs(error) > LARGEST_ERROR]


def left_over(cluster):
    problems = []
    for node, vgpud in cluster.vgpuds.items():
        if vgpud.names():
            problems.append(f"VFs left on {node}: {vgpud.names()}")
        files = os.listdir(f"{vgpud.runtime_dir}/vf")
        if files:
            problems.append(f"files left on {node}: {files}")
        spool = [path.name for path in pathlib.Path(cluster.dir, "vgpu-spool", node).glob("*") if path.name not in ("lock", "order", "why", "missing", "numbers")]
        if spool:
            problems.append(f"files left in the spool of {node}: {spool}")
    # One of each vgpud and of slurmctld lives as long as they do.
    expected = collections.Counter({"vgpud-keep": len(cluster.nodes), "slurmctld: slurmscriptd": 1})
    processes = []
    for pid, words in cluster.processes():
        name = next((each for each in expected if words.startswith(each) and expected[each] > 0), None)
        if name is None:
            processes.append((pid, words))
        else:
            expected[name] -= 1
    if processes:
        problems.append(f"processes left: {processes}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=int, nargs="?", default=200)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=20261125)
    parser.add_argument("--keep", action="store_true", help="keep the cluster's directory, with its logs")
    options = parser.parse_args()
    why = clusters.missing()
    if why:
        print(f"SKIPPED: {why}")
        return SKIPPED
    process.unwind_on_signals()
    with clusters.cluster(keep=options.keep) as cluster:
        prepare(cluster)
        bare = step_without_prolog(cluster)
        jobs, watch, problems = play(cluster, options, random.Random(options.seed))
        problems += bare + wrong_shares(jobs, watch) + left_over(cluster)
        if problems:
            print(cluster.logs())
    for problem in problems[:40]:
        print(f"FAILED: {problem}")
    print(f"FAILED: {len(problems)}" if problems else "PASS")
    return 1 if problems else 0


sys.exit(main())
