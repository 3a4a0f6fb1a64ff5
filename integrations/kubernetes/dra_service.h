// SPDX-License-Identifier: Apache-2.0
// The DRA driver as kubelet sees it: the service DRAPlugin, in both versions, and the one by which kubelet gets to know
// it.
#pragma once

#include <string>

#include "integrations/kubernetes/claim_driver.h"
#include "integrations/kubernetes/dra_v1.grpc.pb.h"
#include "integrations/kubernetes/dra_v1beta1.grpc.pb.h"
#include "integrations/kubernetes/registration.grpc.pb.h"

namespace vgpud::kubernetes {

namespace dra = k8s::io::kubelet::pkg::apis::dra;

grpc::Status PrepareAll(ClaimDriver* driver, const std::string& pool,
                        const dra::v1::NodePrepareResourcesRequest& request,
                        dra::v1::NodePrepareResourcesResponse* response);
grpc::Status UnprepareAll(ClaimDriver* driver, const dra::v1::NodeUnprepareResourcesRequest& request,
                          dra::v1::NodeUnprepareResourcesResponse* response);

// `Base`: dra::v1::DRAPlugin::Service or dra::v1beta1::DRAPlugin::Service.
template <class Base>
class DraService final : public Base {
 public:
  // `driver` outlives it. `pool`: of all of its devices.
  DraService(ClaimDriver* driver, std::string pool) : driver_(driver), pool_(std::move(pool)) {}
  grpc::Status NodePrepareResources(grpc::ServerContext*, const dra::v1::NodePrepareResourcesRequest* request,
                                    dra::v1::NodePrepareResourcesResponse* response) override {
    return PrepareAll(driver_, pool_, *request, response);
  }
  grpc::Status NodeUnprepareResources(grpc::ServerContext*, const dra::v1::NodeUnprepareResourcesRequest* request,
                                      dra::v1::NodeUnprepareResourcesResponse* response) override {
    return UnprepareAll(driver_, *request, response);
  }

 private:
  ClaimDriver* const driver_;
  const std::string pool_;
};

class RegistrationService final : public pluginregistration::Registration::Service {
 public:
  // `endpoint`: the socket of the DRAPlugin services.
  explicit RegistrationService(std::string endpoint) : endpoint_(std::move(endpoint)) {}
  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* info) override;
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*, const pluginregistration::RegistrationStatus* status,
                                        pluginregistration::RegistrationStatusResponse*) override;

 private:
  const std::string endpoint_;
};

}  // namespace vgpud::kubernetes
