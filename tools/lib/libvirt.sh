# SPDX-License-Identifier: Apache-2.0
# The libvirtd of another Debian, for the tests. Sourced by bash; expects $cache and lib/archive.sh.

# install_libvirt SUITE: unpacked into $cache/libvirt-SUITE with its own C library, so that nothing of the machine is
# touched; $cache/libvirt-SUITE/libvirtd and .../virsh start it.
install_libvirt() {
  local suite=$1 dir=$cache/libvirt-$1 debs=$cache/debs/libvirt-$1 program deb
  rm -rf "$dir" "$debs"
  archive_update
  archive_fetch_all "$suite" "$debs" libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients
  mkdir -p "$dir/prefix"
  for deb in "$debs"/*.deb; do dpkg-deb -x "$deb" "$dir/prefix"; done
  rm -rf "$debs"
  for program in sbin/libvirtd bin/virsh; do
    cat >"$dir/$(basename "$program")" <<WRAPPER
#!/bin/sh
P=\$(dirname "\$(readlink -f "\$0")")/prefix
L=\$P/usr/lib/x86_64-linux-gnu
export LIBVIRT_DRIVER_DIR="\$L/libvirt/connection-driver" LIBVIRT_STORAGE_BACKEND_DIR="\$L/libvirt/storage-backend"
exec "\$L/ld-linux-x86-64.so.2" --library-path "\$L" "\$P/usr/$program" "\$@"
WRAPPER
    chmod +x "$dir/$(basename "$program")"
  done
  "$dir/libvirtd" --version
}
