# SPDX-License-Identifier: Apache-2.0
# The guest image of a kernel: an initramfs with busybox, the modules, vgpu.ko, the command agent and this machine's
# C and C++ runtime libraries, so that programs built here run there. Sourced by bash; expects $cache, $repo and
# lib/kernels.sh.

image_libraries=(libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libstdc++.so.6 libgcc_s.so.1)
image_modules=(virtio_pci virtio_console)

copy_library() {
  local root=$1 name=$2 path
  path=$(gcc -print-file-name="$name")
  path=$(readlink -f "$path")
  mkdir -p "$root/lib/x86_64-linux-gnu"
  cp "$path" "$root/lib/x86_64-linux-gnu/$name"
}

copy_modules() {
  local suite=$1 root=$2 release module file base
  release=$(kernel_release "$suite")
  mkdir -p "$root/lib/modules"
  : >"$root/etc/modules"
  for module in "${image_modules[@]}"; do
    modprobe -d "$(kernel_dir "$suite")/tree" -S "$release" --show-depends "$module" | awk '$1 == "insmod" { print $2 }'
  done | awk '!seen[$0]++' | while read -r file; do
    base=$(basename "$file")
    case $base in
      *.xz) base=${base%.xz} && xz -dc "$file" >"$root/lib/modules/$base" ;;
      *.zst) base=${base%.zst} && zstd -qdc "$file" >"$root/lib/modules/$base" ;;
      *) cp "$file" "$root/lib/modules/" ;;
    esac
    echo "$base" >>"$root/etc/modules"
  done
  strip -g -o "$root/lib/modules/vgpu.ko" "$(kernel_dir "$suite")/vgpu.ko"
  echo vgpu.ko >>"$root/etc/modules"
}

# build_image SUITE: $cache/kernel/SUITE/initrd.img
build_image() {
  local suite=$1 root applet library busybox
  root=$(mktemp -d "$cache/image.XXXXXX")
  chmod 755 "$root"
  mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,etc,root,run,usr/bin,lib64}
  busybox=$(command -v busybox)
  cp "$busybox" "$root/bin/busybox"
  for applet in $("$busybox" --list | grep -vx busybox); do ln -s busybox "$root/bin/$applet"; done
  gcc -O2 -Wall -Wextra -Werror -static -o "$root/bin/vgpu-agent" "$repo/tools/guest/agent.c"
  for library in "${image_libraries[@]}"; do copy_library "$root" "$library"; done
  cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
  printf 'root:x:0:0::/root:/bin/sh\ncuda:x:1000:1000::/tmp:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\ncuda:x:1000:\n' >"$root/etc/group"
  printf '%s\n' 'vgpu[0-9]+ 0:1000 660' '(null|zero|full|random|urandom|tty|ptmx|fuse) 0:0 666' >"$root/etc/mdev.conf"
  copy_modules "$suite" "$root"
  install -m 755 "$repo/tools/guest/init" "$root/init"
  (cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) | gzip -1 >"$root.img"
  mv "$root.img" "$(kernel_dir "$suite")/initrd.img"
  rm -rf "$root"
}
