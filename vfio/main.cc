// SPDX-License-Identifier: Apache-2.0
// vgpud-vf: serves one virtual function. Started by vgpud with the link to it as fd 3.
#include <fcntl.h>
#include <fmt/core.h>
#include <getopt.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/foreign_fd.h"
#include "base/jail/confine.h"
#include "base/jail/jail.h"
#include "base/jail/rules.h"
#include "base/log.h"
#include "base/sanitizer.h"
#include "base/vf_link.h"
#include "vfio/vf.h"

namespace vgpud::vfio {
namespace {

constexpr char kUsage[] =
    "usage: vgpud-vf --name NAME --vfio-socket PATH|fd:N --channel-socket PATH|fd:N [--event-budget KIND=NUMBER ...]\n"
    "                [--client-memory] [--confinement KIND [--user UID]]\n"
    "Serves one VF; started by vgpud, which holds the other end of fd 3.";
// Behind executors, before vgpud: without it a VM has lost its device.
constexpr int kOomScore = 200;

struct Options {
  std::string name;
  std::string vfio_socket;
  std::string channel_socket;
  EventBudgets budgets = kDefaultEventBudgets;
  bool client_memory = false;
  Confinement confinement = Confinement::kNothing;
  std::optional<uid_t> user;
};

Result<Options> ParseOptions(int argc, char** argv) {
  Options options;
  const option longs[] = {
      {"name", required_argument, nullptr, 'n'},           {"vfio-socket", required_argument, nullptr, 'v'},
      {"channel-socket", required_argument, nullptr, 'c'}, {"event-budget", required_argument, nullptr, 'b'},
      {"client-memory", no_argument, nullptr, 'm'},        {"confinement", required_argument, nullptr, 'f'},
      {"user", required_argument, nullptr, 'u'},           {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", longs, nullptr)) != -1;) {
    if (c == 'n')
      options.name = optarg;
    else if (c == 'v')
      options.vfio_socket = optarg;
    else if (c == 'c')
      options.channel_socket = optarg;
    else if (c == 'b')
      TRY(ParseEventBudget(optarg, options.budgets));
    else if (c == 'm')
      options.client_memory = true;
    else if (c == 'f' && ParseConfinement(optarg))
      options.confinement = *ParseConfinement(optarg);
    else if (c == 'u')
      options.user = static_cast<uid_t>(std::strtoul(optarg, nullptr, 10));
    else
      return Fail(std::errc::invalid_argument, kUsage);
  }
  if (optind != argc || options.name.empty() || options.vfio_socket.empty() || options.channel_socket.empty())
    return Fail(std::errc::invalid_argument, kUsage);
  return options;
}

// DMA files, channels and executors all hold descriptors; the default soft limit is for programs with a few.
void RaiseFdLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kMostServerFiles);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Its tables are bounded, and far below.
void LimitMemory() {
  constexpr rlim_t kMostBytes = rlim_t{512} << 20;
  if (kSanitizerBuild) return;
  const rlimit limit{kMostBytes, kMostBytes};
  ::setrlimit(RLIMIT_DATA, &limit);
}

// "fd:N" is a listening socket that was handed over.
Result<UniqueFd> Listener(const std::string& where, int type) {
  constexpr std::string_view kHandedOver = "fd:";
  if (where.compare(0, kHandedOver.size(), kHandedOver) != 0) return ListenUnix(where, type);
  UniqueFd socket{std::atoi(where.c_str() + kHandedOver.size())};
  int listening = 0;
  socklen_t size = sizeof listening;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0)
    return Fail(std::errc::not_a_socket, fmt::format("{} is no listening socket", where));
  ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  return socket;
}

Result<void> Serve(const Options& options) {
  SetOomScore(kOomScore);
  LimitMemory();
  std::signal(SIGPIPE, SIG_IGN);
  RaiseFdLimit();
  Vf::Sockets sockets;
  sockets.link = UniqueFd{vf_link::kVfLinkFd};
  ::fcntl(vf_link::kVfLinkFd, F_SETFD, FD_CLOEXEC);
  sockets.vfio = TRY(Listener(options.vfio_socket, SOCK_STREAM));
  sockets.channels = TRY(Listener(options.channel_socket, SOCK_SEQPACKET));
  // Nobody has anything to send there.
  if (!options.client_memory && !RefuseFds(sockets.channels.get()))
    LOG(kDebug, "vf={} this kernel cannot refuse descriptors: those that clients send are closed", options.name);
  StartClosers();
  EventLoop loop;
  const auto vf = TRY(Vf::Start(loop, options.name, std::move(sockets), options.budgets, options.client_memory));
  TRY(EnterConfinement(options.confinement, options.user));
  UniqueFd watch = TRY(EnterJail(JailKind::kVf, vf->watched() ? JailWatch::kAsk : JailWatch::kNone));
  if (watch) vf->TellWatched(std::move(watch));
  LOG(kInfo, "vf={} serves {} and {}", options.name, options.vfio_socket, options.channel_socket);
  loop.Run();
  return {};
}

}  // namespace
}  // namespace vgpud::vfio

int main(int argc, char** argv) {
  using namespace vgpud::vfio;
  using namespace vgpud;
  const auto options = ParseOptions(argc, argv);
  if (!options) {
    fmt::print(stderr, "{}\n", options.error().context);
    return 2;
  }
  SetLogName("vgpud-vf[" + options->name + "]");
  const auto served = Serve(*options);
  if (served) return 0;
  LOG(kError, "vf={} {}", options->name, served.error().context);
  return 1;
}
