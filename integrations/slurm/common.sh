# SPDX-License-Identifier: Apache-2.0
# What prolog, epilog and node-start share. /etc/vgpud/slurm.env, if there is one, sets what stands in the first block otherwise;
# it is a part of a shell script, so only root may be able to write it.
# shellcheck shell=sh

config=${VGPUD_SLURM_ENV:-/etc/vgpud/slurm.env}
# shellcheck source=/dev/null
[ ! -f "$config" ] || . "$config"
VGPUCTL=${VGPUCTL:-vgpuctl}                      # the program
VGPUD_RUNTIME_DIR=${VGPUD_RUNTIME_DIR:-/run/vgpud} # of this node's vgpud
default_profile=${default_profile:-}             # of jobs that name none; empty: vgpuctl's own defaults
max_weight=${max_weight:-1000}                   # jobs may not ask for more
seconds_to_wait=${seconds_to_wait:-20}           # for vgpud, all questions together
accounting=${accounting:-comment}                # "comment": GPU seconds go into the job's AdminComment; "none"
export VGPUD_RUNTIME_DIR

deadline=$(($(date +%s) + seconds_to_wait))

say() { printf 'vgpud: %s: job %s: %s\n' "${0##*/}" "${SLURM_JOB_ID:-?}" "$*" >&2; }

fail() {
  say "$*"
  exit 1
}

# vgpuctl with the time that is left.
ctl() {
  left=$((deadline - $(date +%s)))
  [ "$left" -gt 0 ] || {
    say "vgpud took longer than $seconds_to_wait s: is it running? (vgpuctl list)"
    return 6
  }
  timeout -k 1 "$((left + 1))" "$VGPUCTL" --timeout "$left" "$@"
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
