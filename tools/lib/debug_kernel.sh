# SPDX-License-Identifier: Apache-2.0
# Guest kernels that notice a driver's mistakes: Debian's source of Linux 6.12 with the configuration of
# tests/driver/debug_kernel.config, for kcsan with what kcsan_kernel.config changes of it. Laid out like the kernels of lib/kernels.sh, at
# $cache/kernel/debug and $cache/kernel/kcsan. Sourced by bash; expects $cache, $repo, lib/archive.sh and lib/kernels.sh.

debug_kernel_packages=(flex bison bc)
debug_kernel_source=linux-source-6.12
debug_kernel_config=$repo/tests/driver/debug_kernel.config
kcsan_kernel_config=$repo/tests/driver/kcsan_kernel.config

# Of the source's 1.5 GB what this machine can't use is left out; Kconfig and make want to see the other architectures.
unpack_debug_kernel() {
  local dir debs=$cache/debs/kernel-debug work
  dir=$(kernel_dir debug)
  rm -rf "$debs" "$dir/source"
  mkdir -p "$dir/source"
  archive_update
  archive_fetch trixie "$debs" "$debug_kernel_source"
  work=$(mktemp -d "$cache/source.XXXXXX")
  dpkg-deb -x "$debs"/*.deb "$work"
  nice -n 10 tar -C "$dir/source" --strip-components=1 --wildcards --exclude='*/Documentation/*/*' \
    --exclude='*/drivers/gpu/drm/amd/include/*' --exclude='*/boot/dts/*' --exclude='*/tools/testing/*' \
    -xf "$work/usr/src/$debug_kernel_source.tar.xz"
  rm -rf "$work" "$debs"
}

# The options of debug or kcsan; of those that both files have the last one counts.
debug_kernel_options() {
  local files=("$debug_kernel_config")
  [ "$1" = kcsan ] && files+=("$kcsan_kernel_config")
  awk -F= '/^CONFIG_/ { line[$1] = $0 } END { for (name in line) print line[name] }' "${files[@]}" | sort
}

# configure_debug_kernel SUITE: fails when the source no longer knows an option, or can't have it: the kernel would not notice what it should.
configure_debug_kernel() {
  local dir line missing=0
  dir=$(kernel_dir "$1")
  mkdir -p "$dir/build"
  debug_kernel_options "$1" >"$dir/options"
  make -C "$(kernel_dir debug)/source" O="$dir/build" KCONFIG_ALLCONFIG="$dir/options" allnoconfig
  while IFS= read -r line; do
    case $line in
      CONFIG_*=n | '#'* | '') continue ;;
    esac
    grep -qxF "$line" "$dir/build/.config" || { echo "not possible: $line"; missing=1; }
  done <"$dir/options"
  return $missing
}

# build_debug_kernel SUITE: what was built before is built again only where it changed.
build_debug_kernel() {
  local dir release
  dir=$(kernel_dir "$1")
  configure_debug_kernel "$1"
  nice -n 10 make -C "$dir/build" -j2 bzImage modules
  release=$(cat "$dir/build/include/config/kernel.release")
  rm -rf "$dir/tree"
  make -C "$dir/build" INSTALL_MOD_PATH="$dir/tree" modules_install
  depmod -b "$dir/tree" "$release"
  cp "$dir/build/arch/x86/boot/bzImage" "$dir/vmlinuz"
  printf '%s' "$release" >"$dir/release"
}
