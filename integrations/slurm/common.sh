# SPDX-License-Identifier: Apache-2.0
# What prolog, epilog, sweep and node-start share. /etc/vgpud/slurm.env, if there is one, sets what stands in the first block otherwise;
# it is a part of a shell script, so only root may be able to write it.
# shellcheck shell=sh

config=${VGPUD_SLURM_ENV:-/etc/vgpud/slurm.env}
# shellcheck source=/dev/null
[ ! -f "$config" ] || . "$config"
VGPUCTL=${VGPUCTL:-vgpuctl}                      # the program
VGPUD_RUNTIME_DIR=${VGPUD_RUNTIME_DIR:-/run/vgpud} # of this node's vgpud
default_profile=${default_profile:-}             # of jobs that name none; empty: vgpuctl's own defaults
profiles=${profiles:-$default_profile}           # that jobs may name, with spaces between
max_weight=${max_weight:-1000}                   # what jobs ask for may not come to more
max_slice_us=${max_slice_us:-0}                  # the longest slice that jobs may ask for; 0: they may ask for none
tenant=${tenant:-}                               # whose VFs those of jobs are for vgpud's limits; empty: the tenant slurm, by their names
seconds_to_wait=${seconds_to_wait:-20}           # for vgpud, all questions together
spool=${spool:-/var/spool/vgpud-slurm}           # what is not accounted yet, and why jobs were refused
accounting=${accounting:-comment}                # "comment": GPU seconds go into the job's AdminComment; "none"
export VGPUD_RUNTIME_DIR

deadline=$(($(date +%s) + seconds_to_wait))

# Into the system's log, too: slurmd's has what a prolog or epilog says only when it fails.
say() {
  text=$(printf 'vgpud: %s: job %s: %s' "${0##*/}" "${SLURM_JOB_ID:-?}" "$*")
  printf '%s\n' "$text" >&2
  logger -t vgpud-slurm -- "$text" 2>/dev/null || true
}

fail() {
  say "$*"
  exit 1
}

# No other script of this node runs until this one ends: slurmd may have died and left one behind that still works.
alone() {
  mkdir -p -m 0755 "$spool"
  exec 9>"$spool/lock"
  flock -w "$seconds_to_wait" 9 || fail "another prolog or epilog has run for $seconds_to_wait s"
}

# The last prolog or epilog that began for a job decides, and of those for a number of a VF: slurmd starts them in order, so an earlier one that
# still waits belongs to a slurmd that is gone, and perhaps to a run of the job that is over. JOB.run and numbers/NUMBER name the last one:
# "began RUN"; "made RUN" when its prolog has ended well, for which spank.c looks; "lost RUN" when another job has got one of its numbers since.
run_file() { printf '%s/%s.run' "$spool" "$job"; }
run_in() { sed -n 's/^[a-z]* //p' "$1" 2>/dev/null || true; }
last_run() { run_in "$(run_file)"; }

# Of the job or, after take_numbers, of one of its numbers.
numbers=
superseded() {
  [ "$(last_run)" = "$run" ] || return 0
  for each_number in $numbers; do [ "$(run_in "$spool/numbers/$each_number")" = "$run" ] || return 0; done
  return 1
}

# Nobody else writes or removes run files meanwhile. For a moment only, other than alone.
in_order() {
  mkdir -p -m 0755 "$spool"
  exec 8>"$spool/order"
  flock 8
  "$@"
  exec 8>&-
}
write_run() { printf '%s %s\n' "$1" "$run" >"$(run_file)"; }
made_run() { superseded || write_run made; }
# lose_run JOB: what a prolog made for it is not there any more.
lose_run() { [ ! -f "$spool/$1.run" ] || sed -i 's/^made /lost /' "$spool/$1.run"; }
forget_run() { superseded || rm -f "$(run_file)"; }
take_numbers() {
  mkdir -p -m 0755 "$spool/numbers"
  for each_number in $numbers; do printf 'began %s\n' "$run" >"$spool/numbers/$each_number"; done
}

# Before alone: earlier ones of the job do nothing any more.
begin_run() {
  run=$(cat /proc/sys/kernel/random/uuid)
  in_order write_run began
}

# A slurmctld that was killed may know nothing of a job that it started just before: the job has its VFs as long as it runs. A process is called as
# whoever started it likes, so the name is only where to look: it is Slurm's if root runs it, and that program.
runs_here() {
  for step in $(pgrep -U 0 -f "^slurmstepd: \\[$1\\."); do
    case $(readlink "/proc/$step/exe") in */slurmstepd | */"slurmstepd (deleted)") return 0 ;; esac
  done
  return 1
}

# vgpuctl with the time that is left.
ctl_once() {
  left=$((deadline - $(date +%s)))
  [ "$left" -gt 0 ] || {
    say "vgpud took longer than $seconds_to_wait s: is it running? (vgpuctl list)"
    return 6
  }
  timeout --foreground -k 1 "$((left + 1))" "$VGPUCTL" --timeout "$left" "$@" 9>&-
}

# Whether vgpuctl's exit status is an answer: nothing changes when it is asked again. Otherwise vgpud went away meanwhile, perhaps.
answered() { case $1 in 0 | 2 | 4 | 5) ;; *) return 1 ;; esac }
gone=4     # there is no such VF
conflict=5 # not in the state that it is in

# Asked again when vgpud went away meanwhile, so only for what may be said twice.
ctl() {
  for attempt in 1 2 3 4 5; do
    status=0
    ctl_once "$@" || status=$?
    if answered "$status" || [ "$attempt" = 5 ]; then return "$status"; fi
    say "vgpud did not answer '$1': once more"
  done
}

# "UUID NANOSECONDS" of each VF of the job that was ended and whose seconds are not in the job's record yet.
ended_file() { printf '%s/%s.ended' "$spool" "$1"; }

# Whose VF it is, by its name.
job_of() {
  rest=${1#slurm-}
  printf '%s' "${rest%-*}"
}

# Takes the GPU from a job's VF for good, writes down how long it had it, and ends it. 0 also when there is none.
# vgpud has the seconds on its disk before (that is what report waits for): if it is killed with the VF gone, they are in no account of its own.
end_vf() {
  status=0
  ctl pause "$1" >/dev/null 2>"$spool/why" || status=$?
  [ "$status" != "$gone" ] || return 0
  close_account "$1" || say "how long $1 had the GPU could not be found out"
  ctl report >/dev/null || say "vgpud's own account of $1 may lack its last seconds"
  while :; do
    status=0
    ctl destroy "$1" --force >/dev/null || status=$?
    case $status in
      0 | "$gone") return 0 ;;
      "$conflict") [ "$(date +%s)" -lt "$deadline" ] || return 1 ;; # it is being destroyed already, and its processes take their time
      *) return 1 ;;
    esac
    sleep 0.2
  done
}

close_account() {
  uuid=$(ctl show "$1" -o json | members | sed -n 's/^"uuid": *"\([0-9a-f-]*\)"$/\1/p' | head -n 1)
  ns=$(ctl stats "$1" -o json | members | sed -n 's/^"received_ns": *\([0-9]*\)$/\1/p' | head -n 1)
  [ -n "$uuid" ] && [ -n "$ns" ] || return 1
  file=$(ended_file "$(job_of "$1")")
  grep -qs "^$uuid " "$file" || printf '%s %s\n' "$uuid" "$ns" >>"$file"
}

# The names of all VFs of jobs, one a line.
vfs_of_jobs() {
  answer=$(ctl list -o json) || return 1
  printf '%s\n' "$answer" | members | sed -n 's/^"name": *"\(slurm-[0-9]*-[0-9]*\)"$/\1/p'
}

# JSON, one member of an object a line. Names of VFs and numbers have none of these characters in them.
members() { tr '{}[],' '\n' | sed 's/^ *//'; }

# A job's number of Slurm's environment: digits or nothing.
number() {
  case $1 in
    '' | *[!0-9]*) fail "Slurm's environment has no job number but '$1'" ;;
    *) printf '%s' "$1" ;;
  esac
}
