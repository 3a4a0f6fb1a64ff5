// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/agent.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "integrations/kubernetes/ask.h"
#include "integrations/kubernetes/labels.h"
#include "integrations/kubernetes/podresources.grpc.pb.h"
#include "integrations/kubernetes/slices.h"
#include "vgpud/model/api.h"

namespace vgpud::kubernetes {
namespace {

using Json = nlohmann::json;
using std::chrono_literals::operator""s;

constexpr auto kPatience = 5s;

// Of an object of the API server.
Result<std::string> UidIn(const std::string& object) {
  const Json json = Json::parse(object, nullptr, false);
  if (json.is_object() && json.contains("metadata") && json["metadata"].is_object() &&
      json["metadata"].value("uid", Json()).is_string())
    return json["metadata"]["uid"].get<std::string>();
  return Fail(std::errc::protocol_error, "the API server answered without a UID");
}

}  // namespace

std::string NodeName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  const char* const given = std::getenv("NODE_NAME");
  if (given != nullptr && *given != '\0') return given;
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  std::string small(name.data());
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

Agent::Agent(ApiServer server, Options options, Config config)
    : server_(std::move(server)),
      options_(std::move(options)),
      vgpud_(control::ControlSocketPath(options_.runtime_dir)),
      config_(std::move(config)),
      thread_([this] { Run(); }) {}

Agent::~Agent() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Agent::Update(const Config& config, const Offer& offer) {
  const std::lock_guard lock(mutex_);
  if (config == config_ && offer == offer_) return;
  config_ = config;
  offer_ = offer;
  changed_.notify_all();
}

void Agent::Run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    const Config config = config_;
    const Offer offer = offer_;
    lock.unlock();
    Report(&label_problem_, "the node's labels", Label(config));
    Report(&weight_problem_, "weights of pods", Weigh(config));
    Report(&slice_problem_, "resource slices", Publish(config, offer));
    lock.lock();
    changed_.wait_for(lock, options_.period, [&] { return ends_ || config != config_ || offer != offer_; });
  }
}

void Agent::Report(std::string* known, const char* what, const Result<void>& done) {
  const std::string problem = done ? "" : done.error().context;
  if (problem != *known && !problem.empty()) LOG(kWarning, "{} stay as they are: {}", what, EscapeForLog(problem));
  if (problem.empty() && !known->empty()) LOG(kInfo, "{} can be set again", what);
  *known = problem;
}

Result<void> Agent::Label(const Config& config) {
  const std::string path = fmt::format("/api/v1/nodes/{}", options_.node);
  const std::string gpus = TRY(AskVgpud(vgpud_, "GET", "/v1/gpus", ""));
  const std::string profiles = TRY(AskVgpud(vgpud_, "GET", "/v1/profiles", ""));
  const Labels labels = TRY(LabelsOf(config, gpus, profiles));
  const std::string patch = TRY(LabelsPatch(labels, TRY(server_.Get(path))));
  if (patch.empty()) return {};
  TRY(server_.Patch(path, patch));
  LOG(kInfo, "the node {} has {} labels of ours", options_.node, labels.size());
  return {};
}

Result<void> Agent::Publish(const Config& config, const Offer& offer) {
  if (std::any_of(config.resources.begin(), config.resources.end(), [](const auto& each) { return each.dra; }))
    published_ = true;
  if (!published_ || offer.empty()) return {};
  // Without vgpud there are no devices.
  const auto gpus = AskVgpud(vgpud_, "GET", "/v1/gpus", ""), profiles = AskVgpud(vgpud_, "GET", "/v1/profiles", "");
  const auto devices = DevicesOf(config, offer, gpus.value_or(""), profiles.value_or(""));
  const SliceNode node{.name = options_.node,
                       .uid = TRY(UidIn(TRY(server_.Get(fmt::format("/api/v1/nodes/{}", options_.node)))))};
  const auto changes = TRY(SliceChanges(TRY(server_.Get(SlicesPath(options_.node))), node, devices));
  for (const SliceChange& change : changes) TRY(server_.Change(change.method, change.path, change.body));
  if (!changes.empty()) LOG(kInfo, "the node {} offers {} devices to claims", options_.node, devices.size());
  return {};
}

Result<PodOfVf> Agent::PodsOfVfs(const Config& config) const {
  const auto channel = grpc::CreateChannel("unix:" + options_.pod_resources, grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::ListPodResourcesResponse response;
  const auto status = v1::PodResourcesLister::NewStub(channel)->List(&context, {}, &response);
  if (!status.ok())
    return Fail(std::errc::io_error, fmt::format("kubelet at {}: {}", options_.pod_resources, status.error_message()));
  PodOfVf pods;
  for (const auto& pod : response.pod_resources())
    for (const auto& container : pod.containers())
      for (const auto& devices : container.devices())
        for (const Resource& resource : config.resources)
          if (resource.name == devices.resource_name())
            for (const std::string& vf : devices.device_ids())
              pods[vf] = fmt::format("{}/{}", pod.namespace_(), pod.name());
  return pods;
}

Result<void> Agent::Weigh(const Config& config) {
  if (std::none_of(config.resources.begin(), config.resources.end(), [](const auto& each) { return each.max_weight; }))
    return {};
  const PodOfVf pods = TRY(PodsOfVfs(config));
  const Annotations annotations = TRY(AnnotationsIn(
      TRY(server_.Get(fmt::format("/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D{}", options_.node)))));
  const Wishes wishes = WishesOf(config, pods, annotations, TRY(AskVgpud(vgpud_, "GET", "/v1/profiles", "")));
  for (const auto& [pod, why] : wishes.refused)
    if (refused_[pod] != why) LOG(kWarning, "pod {}: {}", EscapeForLog(pod), why);
  refused_ = wishes.refused;
  const Json vfs = Json::parse(TRY(AskVgpud(vgpud_, "GET", "/v1/vfs", "")), nullptr, false);
  if (!vfs.is_object() || !vfs.contains("vfs") || !vfs["vfs"].is_array())
    return Fail(std::errc::protocol_error, "vgpud answered without VFs");
  for (const Json& vf : vfs["vfs"]) {
    if (!vf.is_object() || !vf.value("name", Json()).is_string()) continue;
    const auto wish = wishes.weights.find(vf["name"].get<std::string>());
    if (wish == wishes.weights.end() || vf.value("weight", Json()) == wish->second) continue;
    TRY(AskVgpud(vgpud_, "PATCH", "/v1/vfs/" + wish->first, Json{{"weight", wish->second}}.dump()));
    const auto pod = pods.find(wish->first);
    LOG(kInfo, "vf={} has the weight {}{}", wish->first, wish->second,
        pod == pods.end() ? "" : ": pod " + EscapeForLog(pod->second));
  }
  return {};
}

}  // namespace vgpud::kubernetes
