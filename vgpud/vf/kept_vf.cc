// SPDX-License-Identifier: Apache-2.0
#include "vgpud/vf/kept_vf.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace vgpud::daemon {
namespace {

// "vf/NAME", "vf/NAME/watch", "vf/NAME/executor/GENERATION", "vf/NAME/channels/GENERATION".
constexpr std::string_view kVf = "vf/";
constexpr std::string_view kWatch = "watch";
constexpr std::string_view kExecutor = "executor/";
constexpr std::string_view kChannels = "channels/";
constexpr uint32_t kGrantPage = 1 + 2;  // of the descriptors below, the third

// In this order, in vgpud-keep.
constexpr UniqueFd KeptVf::*kVfFds[] = {&KeptVf::link,  &KeptVf::pidfd, &KeptVf::grant,
                                        &KeptVf::slots, &KeptVf::log,   &KeptVf::ledger};

std::string NameOf(const std::string& vf) { return fmt::format("{}{}", kVf, vf); }
std::string NameOf(const std::string& vf, uint64_t generation) {
  return fmt::format("{}{}/{}{}", kVf, vf, kExecutor, generation);
}

std::string NameOfChannels(const std::string& vf, uint64_t generation) {
  return fmt::format("{}/{}{}", NameOf(vf), kChannels, generation);
}

bool SortChannels(std::string_view generation, std::vector<UniqueFd>& fds, KeptVf* vf) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(generation.data(), generation.data() + generation.size(), number);
  if (error != std::errc() || end != generation.data() + generation.size() || fds.size() < 2) return false;
  ChannelFiles& channels = vf->channels[number];
  channels.board = std::move(fds.front());
  for (size_t i = 1; i < fds.size(); ++i) channels.files.push_back(std::move(fds[i]));
  return true;
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
  if (name.starts_with(kChannels)) return SortChannels(name.substr(kChannels.size()), kept.fds, &vf);
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

void VfKeeping::Keep(const KeptVf& kept) const {
  if (!on()) return;
  std::vector<int> fds;
  for (const auto fd : kVfFds) fds.push_back((kept.*fd).get());
  (void)keeper_->Store(NameOf(vf_), kept.note, fds, kGrantPage);
}

void VfKeeping::KeepWatch(int watch) const {
  if (on()) (void)keeper_->Store(fmt::format("{}/{}", NameOf(vf_), kWatch), {}, std::span{&watch, 1});
}

void VfKeeping::KeepExecutor(const KeptExecutor& executor) const {
  if (!on()) return;
  const int fds[] = {executor.pidfd.get(), executor.log.get()};
  (void)keeper_->Store(NameOf(vf_, executor.note.generation), executor.note, fds);
}

void VfKeeping::KeepChannels(uint64_t generation, const ChannelFiles& channels) const {
  if (!on()) return;
  std::vector<int> fds{channels.board.get()};
  for (const UniqueFd& file : channels.files) fds.push_back(file.get());
  (void)keeper_->Store(NameOfChannels(vf_, generation), {}, fds);
}

void VfKeeping::ForgetExecutor(uint64_t generation) const {
  if (!on()) return;
  keeper_->Forget(NameOf(vf_, generation));
  keeper_->Forget(NameOfChannels(vf_, generation));
}

void VfKeeping::Forget() const {
  if (on()) keeper_->Forget(NameOf(vf_));
}

}  // namespace vgpud::daemon
