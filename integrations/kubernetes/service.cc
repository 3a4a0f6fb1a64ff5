// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/log.h"
#include "vgpud/containers/cdi.h"

namespace vgpud::kubernetes {
namespace {

using std::chrono_literals::operator""ms;

constexpr int kMostWatchers = 8;
constexpr int kMostContainers = 256;                          // of one pod
constexpr int kMostIds = kMostVfsOfResource * kMostReplicas;  // of one container
constexpr auto kLookForCancelEvery = 500ms;
constexpr const char* kVmDirectory = "/run/vgpud/vf";
constexpr const char* kHealthy = "Healthy";
constexpr const char* kUnhealthy = "Unhealthy";

grpc::Status Wrong(grpc::StatusCode code, const Resource& resource, const std::string& why) {
  const std::string text = fmt::format("{}: {}", resource.name, why);
  LOG(kWarning, "refused: {}", text);
  return {code, text};
}

// What a client wrote, as part of a message.
std::string Quoted(const std::string& text) {
  constexpr size_t kShown = 64;
  return fmt::format("\"{}\"", EscapeForLog(text.substr(0, kShown)));
}

std::string IdOf(const Resource& resource, const std::string& vf, int replica) {
  return resource.replicas == 1 ? vf : fmt::format("{}::{}", vf, replica);
}

void Describe(const Device& device, v1beta1::Device* out) {
  out->set_id(device.id);
  out->set_health(device.healthy ? kHealthy : kUnhealthy);
  if (device.numa_node && *device.numa_node >= 0) out->mutable_topology()->add_nodes()->set_id(*device.numa_node);
}

}  // namespace

Service::Service(Resource resource, Delivery delivery, std::function<Result<void>(const std::string&)> reset)
    : resource_(std::move(resource)), delivery_(std::move(delivery)), reset_(std::move(reset)) {}

void Service::Update(const std::vector<OfferedVf>& vfs) {
  State state;
  for (const OfferedVf& vf : vfs) {
    for (int replica = 0; replica < resource_.replicas; ++replica)
      state.devices.push_back({.id = IdOf(resource_, vf.name, replica),
                               .vf = vf.name,
                               .gpu = vf.gpu,
                               .numa_node = vf.numa_node,
                               .healthy = vf.problem.empty()});
    state.vfs[vf.name] = vf;
    if (!vf.problem.empty()) state.problems[vf.name] = vf.problem;
  }
  const std::lock_guard lock(mutex_);
  const bool same = state.devices == state_.devices;
  state_ = std::move(state);
  if (same) return;
  ++version_;
  changed_.notify_all();
}

void Service::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

Service::State Service::Now() {
  const std::lock_guard lock(mutex_);
  return state_;
}

grpc::Status Service::GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                             v1beta1::DevicePluginOptions* options) {
  options->set_get_preferred_allocation_available(true);
  return grpc::Status::OK;
}

grpc::Status Service::ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                                   grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  struct Count {
    explicit Count(std::atomic<int>* watchers) : all(watchers), mine(++*watchers) {}
    ~Count() { --*all; }
    std::atomic<int>* const all;
    const int mine;
  } const count(&watchers_);
  if (count.mine > kMostWatchers)
    return Wrong(grpc::StatusCode::RESOURCE_EXHAUSTED, resource_, fmt::format("{} watch already", kMostWatchers));
  uint64_t told = 0;
  for (;;) {
    v1beta1::ListAndWatchResponse response;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLookForCancelEvery, [&] { return stopped_ || version_ != told; });
      if (stopped_ || context->IsCancelled()) return grpc::Status::OK;
      if (version_ == told) continue;
      told = version_;
      for (const Device& device : state_.devices) Describe(device, response.add_devices());
    }
    if (!writer->Write(response)) return grpc::Status::OK;
  }
}

grpc::Status Service::GetPreferredAllocation(grpc::ServerContext*, const v1beta1::PreferredAllocationRequest* request,
                                             v1beta1::PreferredAllocationResponse* response) {
  if (request->container_requests_size() > kMostContainers)
    return Wrong(grpc::StatusCode::INVALID_ARGUMENT, resource_, "too many containers in one request");
  const State state = Now();
  for (const auto& container : request->container_requests()) {
    if (container.available_deviceids_size() > kMostIds || container.must_include_deviceids_size() > kMostIds)
      return Wrong(grpc::StatusCode::INVALID_ARGUMENT, resource_, "too many devices in one request");
    Wish wish{.available = {}, .must_include = {}, .size = container.allocation_size()};
    for (const std::string& id : container.available_deviceids()) wish.available.push_back(id);
    for (const std::string& id : container.must_include_deviceids()) wish.must_include.push_back(id);
    const auto chosen = Choose(state.devices, wish);
    if (!chosen) return Wrong(grpc::StatusCode::INVALID_ARGUMENT, resource_, EscapeForLog(chosen.error().context));
    auto* const out = response->add_container_responses();
    for (const std::string& id : *chosen) out->add_deviceids(id);
  }
  return grpc::Status::OK;
}

// `vfs`: those that are asked for, each once.
grpc::Status Service::CheckIds(const State& state, const v1beta1::ContainerAllocateRequest& request,
                               std::vector<std::string>* vfs) const {
  if (request.devices_ids_size() == 0 || request.devices_ids_size() > kMostIds)
    return Wrong(grpc::StatusCode::INVALID_ARGUMENT, resource_,
                 fmt::format("{} devices for one container", request.devices_ids_size()));
  std::map<std::string_view, const Device*> known;
  for (const Device& device : state.devices) known[device.id] = &device;
  std::set<std::string_view> seen;
  for (const std::string& id : request.devices_ids()) {
    const auto found = known.find(id);
    if (found == known.end())
      return Wrong(grpc::StatusCode::NOT_FOUND, resource_, fmt::format("there is no device {}", Quoted(id)));
    if (!seen.insert(id).second)
      return Wrong(grpc::StatusCode::INVALID_ARGUMENT, resource_,
                   fmt::format("device {} is asked for twice", Quoted(id)));
    const std::string& vf = found->second->vf;
    if (const auto problem = state.problems.find(vf); problem != state.problems.end())
      return Wrong(grpc::StatusCode::UNAVAILABLE, resource_, fmt::format("{} can't be used: {}", vf, problem->second));
    if (std::find(vfs->begin(), vfs->end(), vf) == vfs->end()) vfs->push_back(vf);
  }
  return grpc::Status::OK;
}

void Service::Deliver(const State& state, const std::vector<std::string>& vfs,
                      v1beta1::ContainerAllocateResponse* response) const {
  const auto mount = [&](const std::string& container, const std::string& host, bool read_only) {
    auto* const out = response->add_mounts();
    out->set_container_path(container);
    out->set_host_path(host);
    out->set_read_only(read_only);
  };
  if (resource_.vm) {  // where vgpuctl kubevirt says that they are
    for (size_t number = 0; number < vfs.size(); ++number)
      mount(fmt::format("{}/vm{}.sock", kVmDirectory, number), state.vfs.at(vfs[number]).vfio_user_socket, false);
    mount(fmt::format("{}/held-state.vdi", kVmDirectory), delivery_.held_state, true);
    return;
  }
  if (delivery_.cdi) {
    for (const std::string& vf : vfs) response->add_cdi_devices()->set_name(fmt::format("{}={}", daemon::kCdiKind, vf));
    return;
  }
  std::string channels;
  for (const std::string& vf : vfs) {
    const std::string inside = fmt::format("/run/vgpud/{}.sock", vf);
    channels += (channels.empty() ? "" : ",") + inside;
    mount(inside, state.vfs.at(vf).channel_socket, false);
  }
  for (const daemon::LibraryMount& each : daemon::LibraryMounts(delivery_.library))
    mount(each.in_container, each.on_host, true);
  (*response->mutable_envs())["VGPU_CHANNEL"] = channels;
}

grpc::Status Service::Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                               v1beta1::AllocateResponse* response) {
  if (request->container_requests_size() == 0 || request->container_requests_size() > kMostContainers)
    return Wrong(grpc::StatusCode::INVALID_ARGUMENT, resource_,
                 fmt::format("{} containers in one request", request->container_requests_size()));
  const State state = Now();
  std::vector<std::vector<std::string>> of_containers;
  for (const auto& container : request->container_requests()) {
    std::vector<std::string> vfs;
    if (grpc::Status status = CheckIds(state, container, &vfs); !status.ok()) return status;
    of_containers.push_back(std::move(vfs));
  }
  // Nothing is done before all of it is right.
  for (const auto& vfs : of_containers) {
    // Of a VF that several pods share, others may be using it.
    for (const std::string& vf : resource_.replicas == 1 ? vfs : std::vector<std::string>())
      if (const auto done = reset_(vf); !done)
        return Wrong(grpc::StatusCode::UNAVAILABLE, resource_,
                     fmt::format("{} can't be reset: {}", vf, done.error().context));
    for (const std::string& vf : vfs)
      if (const auto done = GiveSockets(state.vfs.at(vf), resource_.user); !done)
        return Wrong(grpc::StatusCode::UNAVAILABLE, resource_, done.error().context);
    Deliver(state, vfs, response->add_container_responses());
    std::string names;
    for (const std::string& vf : vfs) names += (names.empty() ? "" : ", ") + vf;
    LOG(kInfo, "{}: a container gets {}", resource_.name, names);
  }
  return grpc::Status::OK;
}

grpc::Status Service::PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest*,
                                        v1beta1::PreStartContainerResponse*) {
  return grpc::Status::OK;
}

}  // namespace vgpud::kubernetes
