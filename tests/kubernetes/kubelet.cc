// SPDX-License-Identifier: Apache-2.0
// A small honest client in kubelet's place: takes registrations on kubelet.sock, watches the devices of each plugin
// that registers, and asks it for what standard input says, a line each; answers and events are lines of standard
// output.
//
//   allocate RESOURCE ID[,ID...] [ID[,ID...] ...]    a container each
//   prefer RESOURCE SIZE AVAILABLE[,...] [MUST[,...]]
//   pod RESOURCE NAMESPACE/NAME [ID[,ID...]]         who asks for pods' devices (pod-resources.sock) is told of this
//   one garbage RESOURCE COUNT SEED                      so many wrong requests (wrong_requests.h)
//
// usage: kubelet DIRECTORY
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "integrations/kubernetes/deviceplugin.grpc.pb.h"
#include "integrations/kubernetes/podresources.grpc.pb.h"
#include "tests/kubernetes/wrong_requests.h"

namespace {

using Json = nlohmann::ordered_json;
using vgpud::kubernetes::MakeChannel;
using vgpud::kubernetes::SendWrongRequests;

std::mutex output;

void Say(const Json& line) {
  const std::lock_guard lock(output);
  std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

Json ErrorOf(const grpc::Status& status) {
  return {{"code", static_cast<int>(status.error_code())}, {"error", status.error_message()}};
}

// One plugin: watched in a thread of its own until it ends.
struct Peer {
  Peer(const std::string& path, std::string resource_name)
      : resource(std::move(resource_name)), channel(MakeChannel(path)), stub(v1beta1::DevicePlugin::NewStub(channel)) {}
  void Watch() {
    grpc::ClientContext first;
    v1beta1::DevicePluginOptions options;
    if (const auto status = stub->GetDevicePluginOptions(&first, {}, &options); !status.ok())
      return Say({{"ended", resource}, {"why", ErrorOf(status)}});
    const auto reader = stub->ListAndWatch(&context, {});
    v1beta1::ListAndWatchResponse response;
    while (reader->Read(&response)) {
      Json devices = Json::array();
      for (const auto& device : response.devices()) {
        Json nodes = Json::array();
        for (const auto& node : device.topology().nodes()) nodes.push_back(node.id());
        devices.push_back({{"id", device.id()}, {"health", device.health()}, {"nodes", nodes}});
      }
      Say({{"devices", devices}, {"resource", resource}, {"prefers", options.get_preferred_allocation_available()}});
    }
    Say({{"ended", resource}, {"why", ErrorOf(reader->Finish())}});
  }
  const std::string resource;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  grpc::ClientContext context;
};

class Kubelet final : public v1beta1::Registration::Service {
 public:
  explicit Kubelet(std::string directory) : directory_(std::move(directory)) {}
  ~Kubelet() override {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [name, peer] : peers_) peer->context.TryCancel();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request, v1beta1::Empty*) override {
    Say({{"registered", request->resource_name()}, {"version", request->version()}, {"endpoint", request->endpoint()}});
    if (request->version() != "v1beta1" || request->endpoint().find('/') != std::string::npos)
      return {grpc::StatusCode::INVALID_ARGUMENT, "no such version or endpoint"};
    const auto peer = std::make_shared<Peer>(directory_ + "/" + request->endpoint(), request->resource_name());
    const std::lock_guard lock(mutex_);
    if (auto& old = peers_[request->resource_name()]) old->context.TryCancel();
    peers_[request->resource_name()] = peer;
    threads_.emplace_back([peer] { peer->Watch(); });
    return grpc::Status::OK;
  }
  std::shared_ptr<Peer> Find(const std::string& resource) {
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(resource);
    return found == peers_.end() ? nullptr : found->second;
  }

 private:
  const std::string directory_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Peer>> peers_;  // by resource, the last that registered
  std::vector<std::thread> threads_;
};

// Which pod has which devices.
class PodResources final : public v1::PodResourcesLister::Service {
 public:
  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* response) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [pod, has] : pods_) {
      auto* const out = response->add_pod_resources();
      const size_t slash = pod.find('/');
      out->set_namespace_(pod.substr(0, slash));
      out->set_name(pod.substr(slash + 1));
      auto* const devices = out->add_containers()->add_devices();
      devices->set_resource_name(has.first);
      for (const std::string& id : has.second) devices->add_device_ids(id);
    }
    return grpc::Status::OK;
  }
  // How many there are then.
  size_t Set(const std::string& pod, const std::string& resource, std::vector<std::string> ids) {
    const std::lock_guard lock(mutex_);
    if (ids.empty())
      pods_.erase(pod);
    else
      pods_[pod] = {resource, std::move(ids)};
    return pods_.size();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<std::string, std::vector<std::string>>> pods_;
};

std::vector<std::string> Split(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, between);) parts.push_back(part);
  return parts;
}

Json Allocate(Peer& peer, const std::vector<std::string>& words) {
  v1beta1::AllocateRequest request;
  for (size_t i = 2; i < words.size(); ++i) {
    auto* const container = request.add_container_requests();
    for (const std::string& id : Split(words[i], ',')) container->add_devices_ids(id);
  }
  grpc::ClientContext context;
  v1beta1::AllocateResponse response;
  if (const auto status = peer.stub->Allocate(&context, request, &response); !status.ok()) return ErrorOf(status);
  Json containers = Json::array();
  for (const auto& each : response.container_responses()) {
    Json container{{"cdi", Json::array()}, {"mounts", Json::array()}, {"envs", Json::object()}};
    for (const auto& device : each.cdi_devices()) container["cdi"].push_back(device.name());
    for (const auto& mount : each.mounts())
      container["mounts"].push_back({mount.host_path(), mount.container_path(), mount.read_only()});
    for (const auto& [key, value] : each.envs()) container["envs"][key] = value;
    containers.push_back(container);
  }
  return {{"containers", containers}};
}

Json Prefer(Peer& peer, const std::vector<std::string>& words) {
  v1beta1::PreferredAllocationRequest request;
  auto* const container = request.add_container_requests();
  container->set_allocation_size(std::stoi(words.at(2)));
  for (const std::string& id : Split(words.at(3), ',')) container->add_available_deviceids(id);
  if (words.size() > 4)
    for (const std::string& id : Split(words[4], ',')) container->add_must_include_deviceids(id);
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse response;
  if (const auto status = peer.stub->GetPreferredAllocation(&context, request, &response); !status.ok())
    return ErrorOf(status);
  Json ids = Json::array();
  for (const auto& each : response.container_responses())
    for (const std::string& id : each.deviceids()) ids.push_back(id);
  return {{"preferred", ids}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string directory = argv[1], path = directory + "/kubelet.sock";
  ::unlink(path.c_str());
  Kubelet kubelet(directory);
  PodResources pods;
  grpc::ServerBuilder builder, of_pods;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&kubelet);
  const std::string pods_path = directory + "/pod-resources.sock";
  ::unlink(pods_path.c_str());
  of_pods.AddListeningPort("unix:" + pods_path, grpc::InsecureServerCredentials());
  of_pods.RegisterService(&pods);
  const auto server = builder.BuildAndStart(), pods_server = of_pods.BuildAndStart();
  if (!server || !pods_server) return 1;
  Say({{"serving", path}});
  for (std::string line; std::getline(std::cin, line);) {
    const auto words = Split(line, ' ');
    const auto peer = words.size() < 3 ? nullptr : kubelet.Find(words[1]);
    if (!peer)
      Say({{"error", "no such resource: " + line}});
    else if (words[0] == "allocate")
      Say(Allocate(*peer, words));
    else if (words[0] == "prefer")
      Say(Prefer(*peer, words));
    else if (words[0] == "pod")
      Say({{"pod",
            pods.Set(words[2], words[1], words.size() < 4 ? std::vector<std::string>() : Split(words[3], ','))}});
    else if (words[0] == "garbage")
      Say({{"garbage", SendWrongRequests(peer->channel, vgpud::kubernetes::kToDevicePlugin, std::stoul(words.at(2)),
                                         std::stoul(words.at(3)))}});
  }
  pods_server->Shutdown(std::chrono::system_clock::now());
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}
