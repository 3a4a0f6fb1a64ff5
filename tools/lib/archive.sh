# SPDX-License-Identifier: Apache-2.0
# Debian packages from the machine's own mirror without installing them. Sourced by bash; expects $cache.
# Works as any user: apt gets its own lists, status and cache below $cache/apt, but keeps the machine's proxies.

apt_dir=$cache/apt
archive_suites=(bookworm trixie trixie-backports)
archive_components=main

# The address of the main Debian archive as this machine's apt knows it. Never a constant: a machine may only reach
# its own mirror.
archive_uri() {
  local uri
  uri=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 ~ /^(bookworm|trixie)$/ && $2 == "main" && !seen++ { print $3 }')
  [ -n "$uri" ] || uri=$(cat /etc/apt/sources.list.d/debian.sources 2>/dev/null | awk '/^URIs:/ && !seen++ { print $2 }' || true)
  [ -n "$uri" ] || uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '!/security/ && !seen++')
  printf '%s' "$uri"
}

# archive_apt SUITE TOOL ARGS...: apt-get or apt-cache over the suites in archive_suites, SUITE preferred, as if no
# package were installed.
archive_apt() {
  local suite=$1 tool=$2
  shift 2
  "$tool" -qq \
    -o Dir::Etc::sourcelist="$apt_dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o Dir::State="$apt_dir" -o Dir::State::lists="$apt_dir/lists" -o Dir::State::status="$apt_dir/status" \
    -o Dir::Cache="$apt_dir/cache" -o Dir::Cache::archives="$apt_dir/cache/archives" \
    -o APT::Install-Recommends=false -o APT::Default-Release="$suite" -o Debug::NoLocking=true \
    -o APT::Sandbox::User= -o Acquire::Check-Valid-Until=false -o Acquire::Retries=3 \
    -o APT::Architecture=amd64 -o APT::Architectures=amd64 "$@"
}

archive_update() {
  local uri suite keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -f "$keyring" ] || keyring=/usr/share/keyrings/debian-archive-keyring.pgp
  uri=$(archive_uri)
  [ -n "$uri" ] || { echo "apt on this machine names no Debian archive (looked in apt-get indextargets)"; return 1; }
  mkdir -p "$apt_dir/lists/partial" "$apt_dir/cache/archives/partial"
  : >"$apt_dir/status"
  for suite in "${archive_suites[@]}"; do
    echo "deb [signed-by=$keyring] $uri $suite $archive_components"
  done >"$apt_dir/sources.list"
  archive_apt trixie apt-get update
}

# archive_fetch SUITE DIR PACKAGE...: downloads exactly these packages into DIR.
archive_fetch() {
  local suite=$1 dir=$2
  shift 2
  mkdir -p "$dir"
  (cd "$dir" && archive_apt "$suite" apt-get download "$@")
}

# archive_fetch_all SUITE DIR PACKAGE...: the same with everything the packages depend on.
archive_fetch_all() {
  local suite=$1 dir=$2
  shift 2
  rm -f "$apt_dir"/cache/archives/*.deb
  archive_apt "$suite" apt-get -y --download-only install "$@"
  mkdir -p "$dir"
  mv "$apt_dir"/cache/archives/*.deb "$dir/"
}
