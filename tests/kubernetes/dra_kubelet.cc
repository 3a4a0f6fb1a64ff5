// SPDX-License-Identifier: Apache-2.0
// A small honest client in kubelet's place for DRA drivers: does what standard input says, a line each; answers are
// lines of standard output.
//
//   look                                        asks each socket in the directory that was not there before who it is
//   refuse                                      tells it that it is not taken
//   prepare VERSION UID NAMESPACE NAME [...]    VERSION: v1 or v1beta1; three words for each claim
//   unprepare VERSION UID NAMESPACE NAME [...]
//   garbage COUNT SEED                          so many wrong requests (wrong_requests.h)
//
// usage: dra_kubelet REGISTRY_DIRECTORY
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "integrations/kubernetes/dra_v1.grpc.pb.h"
#include "integrations/kubernetes/dra_v1beta1.grpc.pb.h"
#include "integrations/kubernetes/registration.grpc.pb.h"
#include "tests/kubernetes/wrong_requests.h"

namespace {

using Json = nlohmann::ordered_json;
using vgpud::kubernetes::MakeChannel;
namespace dra = k8s::io::kubelet::pkg::apis::dra;

constexpr auto kPatience = std::chrono::seconds(45);  // as kubelet's

struct Context : grpc::ClientContext {
  Context() {
    set_deadline(std::chrono::system_clock::now() + kPatience);
    set_wait_for_ready(true);  // a socket is there before somebody listens
  }
};

Json ErrorOf(const grpc::Status& status) {
  return {{"code", static_cast<int>(status.error_code())}, {"error", status.error_message()}};
}

class Kubelet {
 public:
  explicit Kubelet(std::string directory) : directory_(std::move(directory)) {}

  Json Look() {
    Json found = Json::array();
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      struct stat status {};
      if (::stat(entry.path().c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
      const std::string id = fmt::format("{} {}.{}", status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
      if (seen_.insert(id).second) found.push_back(Register(entry.path()));
    }
    return {{"found", found}};
  }
  Json Refuse() {
    pluginregistration::RegistrationStatus status;
    status.set_error("not\nthis one");
    Context context;
    pluginregistration::RegistrationStatusResponse response;
    return {{"code", registration_->NotifyRegistrationStatus(&context, status, &response).error_code()}};
  }
  Json Prepare(const std::string& version, const dra::v1::NodePrepareResourcesRequest& request) {
    dra::v1::NodePrepareResourcesResponse response;
    Context context;
    const grpc::Status status =
        version == "v1"
            ? dra::v1::DRAPlugin::NewStub(channel_)->NodePrepareResources(&context, request, &response)
            : dra::v1beta1::DRAPlugin::NewStub(channel_)->NodePrepareResources(&context, request, &response);
    if (!status.ok()) return ErrorOf(status);
    Json claims = Json::object();
    for (const auto& [uid, claim] : response.claims()) {
      Json devices = Json::array();
      for (const auto& device : claim.devices())
        devices.push_back({{"requests", std::vector(device.request_names().begin(), device.request_names().end())},
                           {"pool", device.pool_name()},
                           {"device", device.device_name()},
                           {"cdi", std::vector(device.cdi_device_ids().begin(), device.cdi_device_ids().end())}});
      claims[uid] = {{"devices", devices}, {"error", claim.error()}};
    }
    return {{"claims", claims}};
  }
  Json Unprepare(const std::string& version, const dra::v1::NodeUnprepareResourcesRequest& request) {
    dra::v1::NodeUnprepareResourcesResponse response;
    Context context;
    const grpc::Status status =
        version == "v1"
            ? dra::v1::DRAPlugin::NewStub(channel_)->NodeUnprepareResources(&context, request, &response)
            : dra::v1beta1::DRAPlugin::NewStub(channel_)->NodeUnprepareResources(&context, request, &response);
    if (!status.ok()) return ErrorOf(status);
    Json claims = Json::object();
    for (const auto& [uid, claim] : response.claims()) claims[uid] = {{"error", claim.error()}};
    return {{"claims", claims}};
  }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  // As kubelet does: a plugin that is not what it should be is told so.
  Json Register(const std::string& path) {
    registration_ = pluginregistration::Registration::NewStub(MakeChannel(path));
    Context asking, telling;
    pluginregistration::PluginInfo info;
    if (const auto status = registration_->GetInfo(&asking, {}, &info); !status.ok())
      return {{"path", path}, {"why", ErrorOf(status)}};
    pluginregistration::RegistrationStatus taken;
    taken.set_plugin_registered(info.type() == "DRAPlugin" && std::filesystem::is_socket(info.endpoint()));
    pluginregistration::RegistrationStatusResponse response;
    const auto told = registration_->NotifyRegistrationStatus(&telling, taken, &response);
    channel_ = MakeChannel(info.endpoint());
    return {{"path", path},
            {"type", info.type()},
            {"name", info.name()},
            {"endpoint", info.endpoint()},
            {"versions", std::vector(info.supported_versions().begin(), info.supported_versions().end())},
            {"taken", taken.plugin_registered() && told.ok()}};
  }

  const std::string directory_;
  std::set<std::string> seen_;
  std::unique_ptr<pluginregistration::Registration::Stub> registration_;
  std::shared_ptr<grpc::Channel> channel_;
};

template <class Request>
Request ClaimsOf(const std::vector<std::string>& words) {
  Request request;
  for (size_t i = 2; i + 2 < words.size(); i += 3) {
    auto* const claim = request.add_claims();
    claim->set_uid(words[i]);
    claim->set_namespace_(words[i + 1]);
    claim->set_name(words[i + 2]);
  }
  return request;
}

Json Do(Kubelet& kubelet, const std::vector<std::string>& words) {
  if (words.at(0) == "look") return kubelet.Look();
  if (words[0] == "refuse") return kubelet.Refuse();
  if (words[0] == "prepare") return kubelet.Prepare(words.at(1), ClaimsOf<dra::v1::NodePrepareResourcesRequest>(words));
  if (words[0] == "unprepare")
    return kubelet.Unprepare(words.at(1), ClaimsOf<dra::v1::NodeUnprepareResourcesRequest>(words));
  if (words[0] == "garbage")
    return {{"garbage", vgpud::kubernetes::SendWrongRequests(kubelet.channel(), vgpud::kubernetes::kToDraDriver,
                                                             std::stoul(words.at(1)), std::stoul(words.at(2)))}};
  return {{"error", "what is " + words[0]}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Kubelet kubelet(argv[1]);
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> words;
    std::stringstream stream(line);
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) continue;
    std::cout << Do(kubelet, words).dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return 0;
}
