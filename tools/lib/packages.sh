# SPDX-License-Identifier: Apache-2.0
# The Debian packages that building and testing need, by the same names on Debian 12 and 13. Sourced by bash.

packages=(
  meson ninja-build pkg-config g++ make clang clang-format
  libevent-dev libpci-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libfmt-dev libexpected-dev
  libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc libcurl4-openssl-dev
  libseccomp-dev libcap-dev libsqlite3-dev libxml2-dev libncurses-dev libvirt-dev libzstd-dev liblz4-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev
  python3 python3-jinja2 python3-yaml
  podman crun tmux
  patchelf busybox-static cpio kmod xz-utils zstd libelf-dev libssl-dev debian-archive-keyring git
)
# Only the table generator needs libclang, and only where a CUDA toolkit is there to generate from.
generator_packages=(python3-clang libclang1)

missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || echo "$package"
  done
}

install_packages() {
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "not root; these packages are missing:" $missing
    return 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  # shellcheck disable=SC2086 # a list of package names
  apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends $missing
}
