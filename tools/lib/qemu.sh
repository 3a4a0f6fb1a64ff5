# SPDX-License-Identifier: Apache-2.0
# QEMU >= 10.1, the first with the vfio-user-pci device. Sourced by bash; expects $cache and lib/archive.sh.

qemu_dir=$cache/qemu
qemu_min=10.1

# Prints the version of the QEMU binary $1, nothing when it does not run.
qemu_version() { "$1" --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9.]*\).*/\1/p'; }

# Does the QEMU binary $1 have the device?
qemu_fits() {
  local version
  version=$(qemu_version "$1")
  [ -n "$version" ] || return 1
  printf '%s\n%s\n' "$qemu_min" "$version" | sort -V -C || return 1
  case $("$1" -device help 2>/dev/null) in *'"vfio-user-pci"'*) return 0 ;; esac
  return 1
}

# The QEMU that tools/ uses stands at $qemu_dir/qemu-system-x86_64: a link to the system's own where that one is new
# enough, else a wrapper around trixie-backports' packages, unpacked with their own C library so that nothing of the
# machine is touched.
install_qemu() {
  local system debs=$cache/debs/qemu
  rm -rf "$qemu_dir"
  mkdir -p "$qemu_dir"
  system=$(command -v qemu-system-x86_64 || true)
  if [ -n "$system" ] && qemu_fits "$system"; then
    echo "using the system's $system"
    ln -s "$system" "$qemu_dir/qemu-system-x86_64"
    return
  fi
  archive_update
  rm -rf "$debs"
  archive_fetch_all trixie-backports "$debs" qemu-system-x86
  local deb
  for deb in "$debs"/*.deb; do dpkg-deb -x "$deb" "$qemu_dir/prefix"; done
  rm -rf "$debs"
  cat >"$qemu_dir/qemu-system-x86_64" <<'WRAPPER'
#!/bin/sh
P=$(dirname "$(readlink -f "$0")")/prefix
L=$P/usr/lib/x86_64-linux-gnu
export QEMU_MODULE_DIR="$L/qemu"
exec "$L/ld-linux-x86-64.so.2" --library-path "$L" --argv0 qemu-system-x86_64 "$P/usr/bin/qemu-system-x86_64" \
  -L "$P/usr/share/qemu" -L "$P/usr/share/seabios" -L "$P/usr/lib/ipxe/qemu" "$@"
WRAPPER
  chmod +x "$qemu_dir/qemu-system-x86_64"
  qemu_fits "$qemu_dir/qemu-system-x86_64" || {
    echo "the unpacked QEMU $(qemu_version "$qemu_dir/qemu-system-x86_64") has no vfio-user-pci device"
    return 1
  }
}
