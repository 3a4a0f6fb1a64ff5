// SPDX-License-Identifier: Apache-2.0
// vgpud-kubernetes: the device plugin of a Kubernetes node with vgpud (docs/kubernetes.md).
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/log.h"
#include "integrations/kubernetes/agent.h"
#include "integrations/kubernetes/api_server.h"
#include "integrations/kubernetes/config.h"
#include "integrations/kubernetes/endpoint.h"
#include "integrations/kubernetes/vfs.h"
#include "tools/vgpuctl/cdi.h"
#include "tools/vgpuctl/domain/vf_access.h"
#include "vgpud/control/api.h"

namespace vgpud::kubernetes {
namespace {

struct Options {
  std::string config = "/etc/vgpud/kubernetes.toml";
  std::string runtime_dir = control::DefaultRuntimeDir();
  std::string kubelet_dir = "/var/lib/kubelet/device-plugins";
  std::string cdi_file = "/run/cdi/vgpud.json";
  std::string library;
  std::string deliver = "cdi";
  int period_ms = 1000;
  ApiServer::Place api = ApiServer::OfPod();
  std::string node_name = NodeName();
  std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";
  int api_period_ms = 5000;
};

class Plugin {
 public:
  Plugin(Options options, Config config, std::string library)
      : options_(std::move(options)),
        config_(std::move(config)),
        library_(std::move(library)),
        vfs_(options_.runtime_dir) {}

  // From now on with the API server, too.
  void Join(ApiServer server) {
    agent_.emplace(std::move(server),
                   Agent::Options{.node = options_.node_name,
                                  .runtime_dir = options_.runtime_dir,
                                  .pod_resources = options_.pod_resources,
                                  .period = std::chrono::milliseconds(options_.api_period_ms)},
                   config_);
  }

  // Once a period.
  void Step() {
    Reread();
    const Offer offer = vfs_.Reconcile(config_);
    PutImages();
    WriteCdi();
    for (auto it = endpoints_.begin(); it != endpoints_.end();) {
      const auto resource = std::find_if(config_.resources.begin(), config_.resources.end(),
                                         [&](const Resource& each) { return each == it->second->resource(); });
      it = resource == config_.resources.end() ? endpoints_.erase(it) : std::next(it);
    }
    for (const Resource& resource : config_.resources) {
      auto& endpoint = endpoints_[resource.name];
      if (!endpoint)
        endpoint = std::make_unique<Endpoint>(
            options_.kubelet_dir, resource,
            Delivery{.cdi = options_.deliver == "cdi", .library = library_, .held_state = places_.HeldState()},
            [dir = options_.runtime_dir](const std::string& vf) { return Vfs(dir).Reset(vf); });
      endpoint->service().Update(offer.at(resource.name));
      endpoint->Keep();
    }
    if (agent_) agent_->Update(config_);
  }

 private:
  // A file that is wrong changes nothing.
  void Reread() {
    auto config = ReadConfig(options_.config);
    const std::string problem = config ? "" : config.error().context;
    if (problem != problem_ && !problem.empty()) LOG(kWarning, "the configuration stays as it was: {}", problem);
    problem_ = problem;
    if (!config || *config == config_) return;
    LOG(kInfo, "{} has changed: {} resources", options_.config, config->resources.size());
    config_ = std::move(*config);
  }
  // What virtual machines get beside their VFs. It says itself what is wrong.
  void PutImages() {
    if (std::any_of(config_.resources.begin(), config_.resources.end(), [](const auto& each) { return each.vm; }))
      (void)tools::PutHeldState(places_);
  }
  void WriteCdi() {
    if (options_.deliver != "cdi" || vfs_.all().empty()) return;
    auto text = tools::CdiText(vfs_.all(), library_);
    if (text && *text == written_) return;
    const auto done = text ? tools::WriteCdi(options_.cdi_file, *text) : tl::unexpected(text.error());
    if (done)
      written_ = *text;
    else if (cdi_problem_ != done.error().context)
      LOG(kError, "containers can't get VFs: {}", done.error().context);
    cdi_problem_ = done ? "" : done.error().context;
  }

  const Options options_;
  Config config_;
  const std::string library_;
  const tools::Places places_{options_.runtime_dir};
  Vfs vfs_;
  std::optional<Agent> agent_;
  std::map<std::string, std::unique_ptr<Endpoint>> endpoints_;  // by Resource::name
  std::string problem_, cdi_problem_, written_;
};

// Readable when we are to end. Before there are threads.
Result<UniqueFd> EndSignals() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  if (::pthread_sigmask(SIG_BLOCK, &ends, nullptr) != 0) return FailErrno("pthread_sigmask");
  UniqueFd fd{::signalfd(-1, &ends, SFD_CLOEXEC)};
  if (!fd) return FailErrno("signalfd");
  return fd;
}

// A name that is part of a URL.
bool IsNodeName(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  return !name.empty() && name.find_first_not_of(kAllowed) == std::string::npos;
}

int Run(const Options& options) {
  auto config = ReadConfig(options.config);
  const auto library = tools::FindCudaLibrary(options.library);
  if (!config || !library) {
    fmt::print(stderr, "vgpud-kubernetes: {}\n", config ? library.error().context : config.error().context);
    return 1;
  }
  const auto ends = EndSignals();
  if (!ends) {
    fmt::print(stderr, "vgpud-kubernetes: {}\n", ends.error().context);
    return 1;
  }
  Plugin plugin(options, std::move(*config), *library);
  if (!options.api.url.empty()) {
    auto server = ApiServer::At(options.api);
    if (!server || !IsNodeName(options.node_name)) {
      fmt::print(
          stderr, "vgpud-kubernetes: {}\n",
          server ? fmt::format("--node-name: \"{}\" is no name of a node", options.node_name) : server.error().context);
      return 1;
    }
    plugin.Join(std::move(*server));
  }
  pollfd ended{ends->get(), POLLIN, 0};
  do plugin.Step();
  while (::poll(&ended, 1, options.period_ms) <= 0);
  return 0;
}

}  // namespace
}  // namespace vgpud::kubernetes

int main(int argc, char** argv) {
  using vgpud::kubernetes::Options;
  Options options;
  CLI::App app{"The device plugin of a Kubernetes node with vgpud: offers VFs as resources to kubelet."};
  app.set_version_flag("--version", VGPUD_VERSION);
  app.add_option("--config", options.config, "What it offers")->capture_default_str();
  app.add_option("--runtime-dir", options.runtime_dir, "vgpud's directory")->capture_default_str();
  app.add_option("--kubelet-dir", options.kubelet_dir, "kubelet's directory for device plugins")->capture_default_str();
  app.add_option("--cdi-file", options.cdi_file, "Where VFs are described as devices of containers")
      ->capture_default_str();
  app.add_option("--library", options.library, "libcuda.so.1 of vgpud (default: where it was installed)");
  app.add_option("--deliver", options.deliver,
                 "How containers get a VF: cdi, or mounts for a container engine without CDI")
      ->check(CLI::IsMember({"cdi", "mounts"}))
      ->capture_default_str();
  app.add_option("--period-ms", options.period_ms, "How often it looks")
      ->check(CLI::Range(50, 60000))
      ->capture_default_str();
  app.add_option(
      "--api-server", options.api.url,
      "The cluster's API server, for labels and annotations: https://HOST:PORT (in a pod: as the pod knows it)");
  app.add_option("--api-token-file", options.api.token_file, "The token of an account there");
  app.add_option("--api-ca-file", options.api.ca_file, "By which its certificate is known");
  app.add_option("--node-name", options.node_name, "This node's name in the cluster")->capture_default_str();
  app.add_option("--pod-resources", options.pod_resources, "kubelet's socket that says which pod has which VF")
      ->capture_default_str();
  app.add_option("--api-period-ms", options.api_period_ms, "How often it asks the API server")
      ->check(CLI::Range(100, 3600000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  ::umask(0077);
  // With an arena for each of gRPC's threads the memory of large requests is spread over all of them, and never comes
  // back.
  ::mallopt(M_ARENA_MAX, 1);
  vgpud::SetLogName("vgpud-kubernetes");
  return vgpud::kubernetes::Run(options);
}
