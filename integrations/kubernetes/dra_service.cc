// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/dra_service.h"

#include <fmt/format.h>

#include "base/log.h"

namespace vgpud::kubernetes {
namespace {

constexpr int kMostClaims = 256;  // of one pod

ClaimId IdOf(const dra::v1::Claim& claim) {
  return {.uid = claim.uid(), .ns = claim.namespace_(), .name = claim.name()};
}

grpc::Status TooMany(int claims) {
  return {grpc::StatusCode::INVALID_ARGUMENT, fmt::format("{} claims in one request, at most {}", claims, kMostClaims)};
}

// For the log and for kubelet.
std::string Words(const char* what, const ClaimId& id, const Error& error) {
  std::string text = EscapeForLog(fmt::format("{}: claim {}: {}", kDriver, id.text(), error.context));
  LOG(kWarning, "{}: {}", what, text);
  return text;
}

}  // namespace

grpc::Status PrepareAll(ClaimDriver* driver, const std::string& pool,
                        const dra::v1::NodePrepareResourcesRequest& request,
                        dra::v1::NodePrepareResourcesResponse* response) {
  if (request.claims_size() > kMostClaims) return TooMany(request.claims_size());
  for (const dra::v1::Claim& claim : request.claims()) {
    dra::v1::NodePrepareResourceResponse& out = (*response->mutable_claims())[claim.uid()];
    out.Clear();
    const auto given = driver->Prepare(IdOf(claim));
    if (!given) {
      out.set_error(Words("not prepared", IdOf(claim), given.error()));
      continue;
    }
    for (const ClaimDriver::Given& each : *given) {
      dra::v1::Device* const device = out.add_devices();
      device->add_request_names(each.request);
      device->set_pool_name(pool);
      device->set_device_name(each.device);
      for (const std::string& cdi : each.cdi) device->add_cdi_device_ids(cdi);
    }
  }
  return grpc::Status::OK;
}

grpc::Status UnprepareAll(ClaimDriver* driver, const dra::v1::NodeUnprepareResourcesRequest& request,
                          dra::v1::NodeUnprepareResourcesResponse* response) {
  if (request.claims_size() > kMostClaims) return TooMany(request.claims_size());
  for (const dra::v1::Claim& claim : request.claims()) {
    dra::v1::NodeUnprepareResourceResponse& out = (*response->mutable_claims())[claim.uid()];
    out.Clear();
    if (const auto done = driver->Unprepare(IdOf(claim)); !done)
      out.set_error(Words("not given back", IdOf(claim), done.error()));
  }
  return grpc::Status::OK;
}

grpc::Status RegistrationService::GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                                          pluginregistration::PluginInfo* info) {
  info->set_type("DRAPlugin");
  info->set_name(kDriver);
  info->set_endpoint(endpoint_);
  info->add_supported_versions("v1.DRAPlugin");
  info->add_supported_versions("v1beta1.DRAPlugin");
  return grpc::Status::OK;
}

grpc::Status RegistrationService::NotifyRegistrationStatus(grpc::ServerContext*,
                                                           const pluginregistration::RegistrationStatus* status,
                                                           pluginregistration::RegistrationStatusResponse*) {
  if (status->plugin_registered())
    LOG(kInfo, "{} is registered with kubelet", kDriver);
  else
    LOG(kError, "kubelet does not take {}: {}", kDriver, EscapeForLog(status->error()));
  return grpc::Status::OK;
}

}  // namespace vgpud::kubernetes
