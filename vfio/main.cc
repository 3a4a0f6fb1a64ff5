// vgpud-vf: serves one virtual function. Started by vgpud with the link to it as fd 3.
#include <fcntl.h>
#include <fmt/core.h>
#include <getopt.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "base/jail.h"
#include "base/log.h"
#include "base/vf_link.h"
#include "vfio/vf.h"

namespace vgpud {
namespace {

constexpr char kUsage[] =
    "usage: vgpud-vf --name NAME --vfio-socket PATH --channel-socket PATH [--event-budget KIND=NUMBER ...]\n"
    "Serves one VF; started by vgpud, which holds the other end of fd 3.";

struct Options {
  std::string name;
  std::string vfio_socket;
  std::string channel_socket;
  EventBudgets budgets = kDefaultEventBudgets;
};

Result<Options> ParseOptions(int argc, char** argv) {
  Options options;
  const option longs[] = {{"name", required_argument, nullptr, 'n'},
                          {"vfio-socket", required_argument, nullptr, 'v'},
                          {"channel-socket", required_argument, nullptr, 'c'},
                          {"event-budget", required_argument, nullptr, 'b'},
                          {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", longs, nullptr)) != -1;) {
    if (c == 'n')
      options.name = optarg;
    else if (c == 'v')
      options.vfio_socket = optarg;
    else if (c == 'c')
      options.channel_socket = optarg;
    else if (c == 'b')
      TRY(ParseEventBudget(optarg, options.budgets));
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
  limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<void> Serve(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);
  RaiseFdLimit();
  Vf::Sockets sockets;
  sockets.link = UniqueFd{vf_link::kVfLinkFd};
  ::fcntl(vf_link::kVfLinkFd, F_SETFD, FD_CLOEXEC);
  sockets.vfio = TRY(ListenUnix(options.vfio_socket, SOCK_STREAM));
  sockets.channels = TRY(ListenUnix(options.channel_socket, SOCK_SEQPACKET));
  EventLoop loop;
  const auto vf = TRY(Vf::Start(loop, options.name, std::move(sockets), options.budgets));
  TRY(EnterJail(JailKind::kVf));
  LOG(kInfo, "vf={} serves {} and {}", options.name, options.vfio_socket, options.channel_socket);
  loop.Run();
  return {};
}

}  // namespace
}  // namespace vgpud

int main(int argc, char** argv) {
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
