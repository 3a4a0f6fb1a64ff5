// SPDX-License-Identifier: Apache-2.0
#include "vgpud/kept_vf.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace vgpud::daemon {
namespace {

// "vf/NAME", "vf/NAME/watch", "vf/NAME/executor/GENERATION".
constexpr std::string_view kVf = "vf/";
constexpr std::string_view kWatch = "watch";
constexpr std::string_view kExecutor = "executor/";
constexpr uint32_t kGrantPage = 1 + 2;  // of the descriptors below, the third

// In this order, in vgpud-keep.
constexpr UniqueFd KeptVf::*kVfFds[] = {&KeptVf::link,  &KeptVf::pidfd, &KeptVf::grant,
                                        &KeptVf::slots, &KeptVf::log,   &KeptVf::ledger};

std::string NameOf(const std::string& vf) { return fmt::format("{}{}", kVf, vf); }
std::string NameOf(const std::string& vf, uint64_t generation) {
  return fmt::format("{}{}/{}{}", kVf, vf, kExecutor, generation);
}

// False: it is not understood.
bool Sort(Keeper::Kept& kept, KeptVfs* vfs) {
  std::string_view name = kept.name;
  if (!name.starts_with(kVf)) return false;
  name.remove_prefix(kVf.size());
  const size_t end = name.find('/');
  KeptVf& vf = (*vfs)[std::string(name.substr(0, end))];
  if (end == name.npos) {
    const auto note = kept.Note<VfNote>();
    if (!note || kept.fds.size() < std::size(kVfFds)) return false;
    vf.note = *note;
    for (size_t i = 0; i < std::size(kVfFds); ++i) vf.*kVfFds[i] = std::move(kept.fds[i]);
    return true;
  }
  name.remove_prefix(end + 1);
  if (name == kWatch && kept.fds.size() == 1) {
    vf.watch = std::move(kept.fds[0]);
    return true;
  }
  const auto note = kept.Note<ExecutorNote>();
  if (!name.starts_with(kExecutor) || !note || kept.fds.size() != 2) return false;
  vf.executors.push_back({*note, std::move(kept.fds[0]), std::move(kept.fds[1])});
  return true;
}

void KillBy(const UniqueFd& pidfd) {
  if (pidfd) ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
}

}  // namespace

void KeptVf::Kill() const {
  KillBy(pidfd);
  for (const KeptExecutor& executor : executors) KillBy(executor.pidfd);
}

KeptVfs SortKept(std::vector<Keeper::Kept> all) {
  KeptVfs vfs;
  for (Keeper::Kept& kept : all)
    if (!Sort(kept, &vfs)) LOG(kError, "vgpud-keep holds \"{}\", which is not understood", kept.name);
  return vfs;
}

void KeepVf(Keeper& keeper, const std::string& vf, const KeptVf& kept) {
  std::vector<int> fds;
  for (const auto fd : kVfFds) fds.push_back((kept.*fd).get());
  (void)keeper.Store(NameOf(vf), kept.note, fds, kGrantPage);
}

void KeepWatch(Keeper& keeper, const std::string& vf, int watch) {
  (void)keeper.Store(fmt::format("{}/{}", NameOf(vf), kWatch), {}, std::span{&watch, 1});
}

void KeepExecutor(Keeper& keeper, const std::string& vf, const KeptExecutor& executor) {
  const int fds[] = {executor.pidfd.get(), executor.log.get()};
  (void)keeper.Store(NameOf(vf, executor.note.generation), executor.note, fds);
}

void ForgetVf(Keeper& keeper, const std::string& vf) { keeper.Forget(NameOf(vf)); }

void ForgetExecutor(Keeper& keeper, const std::string& vf, uint64_t generation) {
  keeper.Forget(NameOf(vf, generation));
}

}  // namespace vgpud::daemon
