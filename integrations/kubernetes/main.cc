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
#include "integrations/kubernetes/claim_driver.h"
#include "integrations/kubernetes/config.h"
#include "integrations/kubernetes/dra_endpoint.h"
#include "integrations/kubernetes/endpoint.h"
#include "integrations/kubernetes/vfs.h"
#include "tools/vgpuctl/cdi.h"
#include "tools/vgpuctl/domain/vf_access.h"
#include "vgpud/model/api.h"

namespace vgpud::kubernetes {
namespace {

constexpr const char* kNoApiServer =
    "a resource has dra = true, for claims, and claims are read from the API server: say where it is (--api-server)";

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
  std::string plugins_dir = "/var/lib/kubelet/plugins";
  std::string registry_dir = "/var/lib/kubelet/plugins_registry";
};

// Whether claims can have VFs, for which there must be an API server: it has the claims.
bool HasClaims(const Config& config) {
  return std::any_of(config.resources.begin(), config.resources.end(), [](const auto& each) { return each.dra; });
}

class Plugin {
 public:
  Plugin(Options options, Config config, std::string library)
      : options_(std::move(options)),
        config_(std::move(config)),
        library_(std::move(library)),
        vfs_(options_.runtime_dir) {}

  // From now on with the API server, too.
  [[nodiscard]] Result<void> Join(ApiServer server) {
    const std::string own = fmt::format("{}/{}", options_.plugins_dir, kDriver);
    driver_ = TRY(ClaimDriver::Open(
        {.node = options_.node_name,
         .runtime_dir = options_.runtime_dir,
         .claims_dir = own + "/claims",
         .cdi_file = options_.cdi_file.substr(0, options_.cdi_file.rfind('/') + 1) + "vgpud-claims.json",
         .library = library_},
        server));
    dra_.emplace(own, options_.registry_dir, driver_.get(), options_.node_name);
    agent_.emplace(std::move(server),
                   Agent::Options{.node = options_.node_name,
                                  .runtime_dir = options_.runtime_dir,
                                  .pod_resources = options_.pod_resources,
                                  .period = std::chrono::milliseconds(options_.api_period_ms)},
                   config_);
    return {};
  }

  // Once a period.
  void Step() {
    Reread();
    const Offer offer = driver_ ? driver_->Reconcile(config_, &vfs_) : vfs_.Reconcile(config_);
    PutImages();
    WriteCdi();
    for (auto it = endpoints_.begin(); it != endpoints_.end();) {
      const auto resource = std::find_if(config_.resources.begin(), config_.resources.end(), [&](const Resource& each) {
        return each == it->second->resource() && !each.dra;
      });
      it = resource == config_.resources.end() ? endpoints_.erase(it) : std::next(it);
    }
    for (const Resource& resource : config_.resources) {
      if (resource.dra) continue;
      auto& endpoint = endpoints_[resource.name];
      if (!endpoint)
        endpoint = std::make_unique<Endpoint>(
            options_.kubelet_dir, resource,
            Delivery{.cdi = options_.deliver == "cdi", .library = library_, .held_state = places_.HeldState()},
            [dir = options_.runtime_dir](const std::string& vf) { return Vfs(dir).Reset(vf); });
      endpoint->service().Update(offer.at(resource.name));
      endpoint->Keep();
    }
    if (dra_ && HasClaims(config_)) dra_->Keep();
    if (agent_) agent_->Update(config_, offer);
  }

 private:
  // A file that is wrong changes nothing.
  void Reread() {
    auto config = ReadConfig(options_.config);
    if (config && !driver_ && HasClaims(*config)) config = Fail(std::errc::invalid_argument, kNoApiServer);
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
    const auto done = text ? daemon::WriteCdi(options_.cdi_file, *text) : tl::unexpected(text.error());
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
  std::unique_ptr<ClaimDriver> driver_;
  std::optional<DraEndpoint> dra_;
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

Result<void> JoinCluster(const Options& options, bool has_claims, Plugin* plugin) {
  if (options.api.url.empty())
    return has_claims ? Fail(std::errc::invalid_argument, fmt::format("{}: {}", options.config, kNoApiServer))
                      : Result<void>();
  ApiServer server = TRY(ApiServer::At(options.api));
  if (!IsNodeName(options.node_name))
    return Fail(std::errc::invalid_argument,
                fmt::format("--node-name: \"{}\" is no name of a node", options.node_name));
  return plugin->Join(std::move(server));
}

int Run(const Options& options) {
  auto config = ReadConfig(options.config);
  const auto library = daemon::FindCudaLibrary(options.library);
  if (!config || !library) {
    fmt::print(stderr, "vgpud-kubernetes: {}\n", config ? library.error().context : config.error().context);
    return 1;
  }
  const auto ends = EndSignals();
  if (!ends) {
    fmt::print(stderr, "vgpud-kubernetes: {}\n", ends.error().context);
    return 1;
  }
  const bool has_claims = HasClaims(*config);
  Plugin plugin(options, std::move(*config), *library);
  if (const auto joined = JoinCluster(options, has_claims, &plugin); !joined) {
    fmt::print(stderr, "vgpud-kubernetes: {}\n", joined.error().context);
    return 1;
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
  app.add_option("--plugins-dir", options.plugins_dir, "kubelet's directory for plugins, for claims")
      ->capture_default_str();
  app.add_option("--plugins-registry", options.registry_dir, "Where kubelet looks for them")->capture_default_str();
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
