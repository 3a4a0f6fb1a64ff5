# SPDX-License-Identifier: Apache-2.0
# The step engine of tools/setup: each step has a key made of its inputs and is skipped while its stamp carries that key.
# Sourced by bash; expects $repo and $cache.
# No `| grep -q` and no `| head` in what set-up runs: under pipefail they fail when the writer notices the closed pipe.

stamps=$cache/stamps
logs=$cache/log
steps_total=0
steps_done=0

say() { printf 'setup: %s\n' "$*"; }

# fail WHAT NEXT: the one error a failed set-up ends with.
fail() {
  printf '\nsetup: error: %s\n       next step: %s\n' "$1" "$2" >&2
  exit 1
}

# key_of FILE|TEXT ...: one hash over the contents of the files and the other words themselves.
key_of() {
  local item
  for item in "$@"; do
    if [ -f "$item" ]; then sha256sum <"$item"; else printf '%s\n' "$item"; fi
  done | sha256sum | cut -c1-24
}

is_done() { [ "$(cat "$stamps/$1" 2>/dev/null)" = "$2" ]; }

# step NAME KEY TITLE FUNCTION NEXT_STEP: runs FUNCTION with its output in a log unless NAME was done with the same KEY.
step() {
  local name=$1 key=$2 title=$3 function=$4 next=$5 began status
  steps_done=$((steps_done + 1))
  is_done "$name" "$key" && return 0
  mkdir -p "$stamps" "$logs"
  printf 'setup: [%d/%d] %s ...' "$steps_done" "$steps_total" "$title"
  began=$SECONDS
  rm -f "$stamps/$name"
  # Not as the condition of an `if`: bash would ignore set -e inside.
  set +e
  (set -euo pipefail; "$function") >"$logs/$name.log" 2>&1 </dev/null
  status=$?
  set -e
  if [ $status = 0 ]; then
    printf ' done (%d s)\n' $((SECONDS - began))
    printf '%s' "$key" >"$stamps/$name"
    return 0
  fi
  printf ' failed after %d s\n' $((SECONDS - began))
  tail -n 25 "$logs/$name.log" | sed 's/^/  | /' >&2
  fail "$title failed; the whole log is $logs/$name.log" "$next"
}
