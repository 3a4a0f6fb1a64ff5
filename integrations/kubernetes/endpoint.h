// SPDX-License-Identifier: Apache-2.0
// The socket of one resource in kubelet's directory: serves it, and tells kubelet of it; again whenever kubelet came
// back, which removes all sockets there. One thread.
#pragma once

#include <string>

#include "base/result.h"
#include "integrations/kubernetes/served_socket.h"
#include "integrations/kubernetes/service.h"

namespace vgpud::kubernetes {

class Endpoint {
 public:
  // `directory`: /var/lib/kubelet/device-plugins.
  Endpoint(std::string directory, Resource resource, Delivery delivery,
           std::function<Result<void>(const std::string& vf)> reset);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Call it every second, or so: does what there is to do. Says in the log what failed, once.
  void Keep();
  const Resource& resource() const { return resource_; }
  Service& service() { return service_; }

 private:
  [[nodiscard]] Result<void> Register();

  const std::string directory_, name_;
  const Resource resource_;
  Service service_;
  ServedSocket socket_;
  ServedSocket::FileId registered_;  // kubelet's socket that knows us
  std::string problem_;
};

}  // namespace vgpud::kubernetes
