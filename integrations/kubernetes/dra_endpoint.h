// SPDX-License-Identifier: Apache-2.0
// The two sockets of the DRA driver: the one that kubelet finds in the directory that it watches, and the one which
// that leads it to. One thread.
#pragma once

#include <string>

#include "integrations/kubernetes/claim_driver.h"
#include "integrations/kubernetes/dra_service.h"
#include "integrations/kubernetes/served_socket.h"

namespace vgpud::kubernetes {

class DraEndpoint {
 public:
  // `plugins_dir`: of this driver alone, as /var/lib/kubelet/plugins/vgpud.dev; `registry_dir`: kubelet's, as
  // /var/lib/kubelet/plugins_registry. `driver` outlives it.
  DraEndpoint(const std::string& plugins_dir, const std::string& registry_dir, ClaimDriver* driver,
              const std::string& node);
  ~DraEndpoint();

  // Call it every second, or so: does what there is to do. Says in the log what failed, once.
  void Keep();

 private:
  DraService<dra::v1::DRAPlugin::Service> v1_;
  DraService<dra::v1beta1::DRAPlugin::Service> v1beta1_;
  RegistrationService registration_;
  ServedSocket plugin_, registry_;
  std::string problem_;
};

}  // namespace vgpud::kubernetes
