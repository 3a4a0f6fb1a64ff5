# SPDX-License-Identifier: Apache-2.0
# Guest kernels: Debian's cloud kernel of a release, with what building vgpu.ko against it needs, unpacked below
# $cache/kernel/SUITE. Sourced by bash; expects $cache, $repo, lib/archive.sh and lib/qemu.sh.
#
#   release    vmlinuz, the version string    tree/  unpacked packages    build/  tree for make -C

# One guest image per suite; the first is the default.
kernel_suites=(bookworm trixie)

kernel_dir() { printf '%s/kernel/%s' "$cache" "$1"; }
kernel_release() { cat "$(kernel_dir "$1")/release"; }

# The packages' helper programs were linked for their own release's C library; where this machine's is older they are
# started with the library of the unpacked QEMU.
wrap_foreign_tools() {
  local kbuild=$1 tool magic lib=$qemu_dir/prefix/usr/lib/x86_64-linux-gnu
  find "$kbuild" -type f -perm -100 ! -name '*.sh' | while read -r tool; do
    IFS= read -r -n 4 magic <"$tool" 2>/dev/null || true
    case $magic in ?ELF) ;; *) continue ;; esac
    # Starting a tool without arguments only shows whether its libraries fit.
    case $(ldd "$tool" 2>&1) in *'not found'*)
      [ -e "$lib/ld-linux-x86-64.so.2" ] || { echo "$tool needs a newer C library than this machine has"; return 1; }
      mv "$tool" "$tool.elf"
      printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' \
        "$lib/ld-linux-x86-64.so.2" "$lib" "$tool.elf" >"$tool"
      chmod +x "$tool"
      ;;
    esac
  done
}

# install_kernel SUITE
install_kernel() {
  local suite=$1 dir debs release headers parts file
  dir=$(kernel_dir "$suite")
  debs=$cache/debs/kernel-$suite
  rm -rf "$dir" "$debs"
  mkdir -p "$dir/tree"
  [ -f "$apt_dir/sources.list" ] || archive_update
  release=$(archive_apt "$suite" apt-cache depends linux-image-cloud-amd64 |
    awk '/^ *Depends: linux-image-/ && !seen++ { sub(/^ *Depends: linux-image-/, ""); print }')
  [ -n "$release" ] || { echo "$suite has no linux-image-cloud-amd64"; return 1; }
  headers=$(archive_apt "$suite" apt-cache depends "linux-headers-$release" |
    sed -n 's/^ *Depends: \(linux-headers-[^ ]*-common\|linux-kbuild-[^ ]*\)$/\1/p' | sort -u)
  # Newer kernels come in several packages.
  parts=$(archive_apt "$suite" apt-cache depends "linux-image-$release" |
    sed -n 's/^ *Depends: \(linux-\(base\|binary\|modules\)-.*\)$/\1/p' | sort -u)
  # shellcheck disable=SC2086 # lists of package names
  archive_fetch "$suite" "$debs" "linux-image-$release" "linux-headers-$release" $headers $parts
  for file in "$debs"/*.deb; do dpkg-deb -x "$file" "$dir/tree"; done
  rm -rf "$debs"
  find "$dir/tree" -name 'vmlinuz*' -exec cp {} "$dir/vmlinuz" \;
  [ -f "$dir/vmlinuz" ] || { echo "the packages of $release contain no vmlinuz"; return 1; }
  # Debian's headers name each other by absolute path: let them name the unpacked ones.
  find "$dir/tree/usr/src" -name Makefile -o -name .kernelvariables | while read -r file; do
    sed -i "s#\([= ]\)/usr/src/linux-headers#\1$dir/tree/usr/src/linux-headers#g" "$file"
  done
  fix_links "$dir/tree"
  ln -s "tree/usr/src/linux-headers-$release" "$dir/build"
  rm -f "$dir/build/vmlinux" # only for debug types, which would need another tool
  wrap_foreign_tools "$dir/tree/usr/lib"
  [ -d "$dir/tree/lib/modules" ] || ln -s usr/lib "$dir/tree/lib"
  depmod -b "$dir/tree" "$release"
  printf '%s' "$release" >"$dir/release"
}

# Turns absolute links inside an unpacked tree into ones that stay inside it.
fix_links() {
  local root=$1 link target
  find "$root/usr/src" -type l | while read -r link; do
    target=$(readlink "$link")
    case $target in
      /*) ln -sfn "$root$target" "$link" ;;
    esac
  done
}

# compile_module SUITE DIRECTORY [CFLAG...]: vgpu.ko for that kernel, in a directory of its own.
compile_module() {
  local suite=$1 work=$2 release
  shift 2
  release=$(kernel_release "$suite")
  rm -rf "$work"
  mkdir -p "$work/include/uapi"
  cp "$repo"/guest-driver-shim/kmod/*.[ch] "$repo"/guest-driver-shim/kmod/Kbuild "$work/"
  cp "$repo"/guest-driver-shim/include/uapi/*.h "$work/include/uapi/"
  # The compiler is this machine's, not the one that built the kernel: options it does not know are switched off.
  local options=(CC=gcc HOSTCC=gcc "KCFLAGS=-Werror $*")
  echo 'int x;' | gcc -fmin-function-alignment=16 -c -xc -o /dev/null - 2>/dev/null ||
    options+=(CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=)
  make -C "$(kernel_dir "$suite")/build" M="$work" "${options[@]}" modules
  case $(modinfo -F vermagic "$work/vgpu.ko") in
    "$release "*) ;;
    *) echo "vgpu.ko is not for $release" && return 1 ;;
  esac
}

# build_module SUITE: vgpu.ko for that kernel, at kernel/SUITE/vgpu.ko.
build_module() {
  local dir
  dir=$(kernel_dir "$1")
  compile_module "$1" "$dir/kmod"
  cp "$dir/kmod/vgpu.ko" "$dir/vgpu.ko"
}
