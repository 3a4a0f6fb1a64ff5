// SPDX-License-Identifier: Apache-2.0
// Takes the place of vgpud-exec for the VF "bad", with exactly its rights and descriptors: it does what
// gpu/exec_main.cc does until it is in its jail, and then what "target" names. Other VFs get the real program
// ($REAL_VGPUD_EXEC).
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <future>
#include <utility>

#include "base/clock.h"
#include "base/jail/confine.h"
#include "base/jail/jail.h"
#include "base/message.h"
#include "gpu/exec/guard.h"
#include "gpu/exec/workers.h"
#include "tests/adversary/adversary.h"

namespace vgpud::adversary {
namespace {

constexpr int kOomScore = 500;

Result<Message> Receive(int link) {
  for (;;) {
    pollfd readable{link, POLLIN, 0};
    ::poll(&readable, 1, -1);
    auto message = ReceiveMessage(link);
    if (message || message.error().code != std::errc::resource_unavailable_try_again) return message;
  }
}

struct Place {
  Post post;
  exec::Workers workers;
};

Result<Place> TakePlace(Confinement confinement, std::optional<uid_t> user, const exec::MemoryLimit& memory,
                        uint32_t threads, uint64_t most_threads, const Target& target) {
  exec::ExitOnSigbus();
  SetOomScore(kOomScore);
  TRY(exec::SetLimits(memory, threads, most_threads));
  TRY(EnterConfinement(confinement, user));
  Post post;
  post.daemon = target.daemon;
  ::fcntl(post.link, F_SETFL, O_NONBLOCK);
  Message message = TRY(Receive(post.link));
  post.attach = TRY(message.As<exec_link::Attach>());
  // The real one closes their files; they are in reach of whoever takes it over before.
  post.slices = TRY(MapSlices(exec_link::kGrantPageFd, exec_link::kSlotPageFd));
  post.kick = message.fds.at(0).Trust();
  post.call = message.fds.at(1).Trust();
  const bool watched = post.attach.watched != 0;
  const JailWatch watching = watched ? JailWatch::kAsk : JailWatch::kNone;
  exec::Workers workers = TRY(exec::Workers::Start(watching, SchedulerCpu(post.slices.grant_page())));
  const UniqueFd watch = TRY(EnterJail(JailKind::kExec, watching));
  if (!watched) return Place{std::move(post), std::move(workers)};
  const UniqueFd others = workers.TakeWatch();
  const int fds[] = {watch.get(), others.get()};
  TRY(SendStruct(post.link, exec_link::Plain{exec_link::Kind::kWatched},
                 watch && others ? std::span<const int>{fds} : std::span<const int>{}));
  return Place{std::move(post), std::move(workers)};
}

void Run(Place& place, const ExecAttack& attack) {
  if (attack.maps) return attack.run(place.post);
  std::promise<void> done;
  place.workers.Run([&] {
    attack.run(place.post);
    done.set_value();
  });
  done.get_future().wait();
}

int List() {
  for (const auto attacks : {CallAttacks(), WorldAttacks()})
    for (const ExecAttack& attack : attacks) fmt::print("executor.{}\t{}\n", attack.name, attack.about);
  return 0;
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) return List();
  const std::string_view vf = OptionOf(argc, argv, "--vf"), user_text = OptionOf(argc, argv, "--user");
  const auto confinement = ParseConfinement(OptionOf(argc, argv, "--confinement")).value_or(Confinement::kNothing);
  std::optional<uid_t> user;
  if (!user_text.empty()) user = static_cast<uid_t>(std::strtoul(user_text.data(), nullptr, 10));
  if (vf != "bad") RunReal("REAL_VGPUD_EXEC", argv);
  const Target target = ReadTarget();
  const auto number = [&](const char* option) {
    return std::strtoull(std::string(OptionOf(argc, argv, option)).c_str(), nullptr, 10);
  };
  auto place = TakePlace(confinement, user, {number("--vram") + number("--host-memory"), number("--most-memory")},
                         static_cast<uint32_t>(number("--threads")), number("--most-threads"), target);
  if (!place) {
    Say("attack: not in its place: " + place.error().context);
    return 1;
  }
  for (const auto attacks : {CallAttacks(), WorldAttacks()})
    for (const ExecAttack& attack : attacks) {
      if (target.attack != std::string("executor.") + attack.name) continue;
      Run(*place, attack);
      Say("attack: " + target.attack + " is through");
    }
  // As the real one does: the end of the link is its end.
  for (;;)
    if (auto message = Receive(place->post.link); !message) return 0;
}

}  // namespace

void Post::Enter(ExecState state) const {
  slot().state.store(static_cast<uint32_t>(state));
  Ring(slices.slot_page());
}

void Post::TakeTurn() const {
  Enter(ExecState::kReady);
  for (;;) {
    const uint32_t grant = slices.grant_page().grant.load();
    if ((grant & GrantPage::kRun) != 0) break;
    FutexWait(&slices.grant_page().grant, grant);
  }
  slot().state.store(static_cast<uint32_t>(ExecState::kRunning));
}

exec_link::Piece Post::NextPiece() const {
  for (;;) {
    const auto message = Receive(link);
    if (!message) ::_exit(0);
    if (const auto kind = message->As<exec_link::Kind>(); !kind || *kind != exec_link::Kind::kMapArea) continue;
    exec_link::Piece piece;
    std::memcpy(&piece, message->bytes.data() + sizeof(exec_link::Area), sizeof piece);
    return piece;
  }
}

}  // namespace vgpud::adversary

int main(int argc, char** argv) { return vgpud::adversary::Main(argc, argv); }
