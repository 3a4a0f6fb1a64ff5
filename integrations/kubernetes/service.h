// SPDX-License-Identifier: Apache-2.0
// The device plugin of one resource as kubelet sees it: the service DevicePlugin of deviceplugin.proto. It keeps no
// account of who has what: that is kubelet's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "integrations/kubernetes/choose.h"
#include "integrations/kubernetes/config.h"
#include "integrations/kubernetes/deviceplugin.grpc.pb.h"
#include "integrations/kubernetes/vfs.h"

namespace vgpud::kubernetes {

// What containers get of a VF.
struct Delivery {
  bool cdi = true;  // by the names of its devices (CDI); else, and for several VFs at once, by mounts and a variable
  std::string library;     // libcuda.so.1 of vgpud on the host, for mounts
  std::string held_state;  // for virtual machines: the image of tools/libvirt/held_state.h on the host
};

class Service final : public v1beta1::DevicePlugin::Service {
 public:
  // `reset`: brings a VF back to how it was made; called from threads of gRPC.
  Service(Resource resource, Delivery delivery, std::function<Result<void>(const std::string& vf)> reset);

  // What there is from now on; whoever watches is told. Any thread.
  void Update(const std::vector<OfferedVf>& vfs);
  // Ends all ListAndWatch, now and from now on. Any thread.
  void Stop();

  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* options) override;
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext*, const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override;
  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override;
  grpc::Status PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest*,
                                 v1beta1::PreStartContainerResponse*) override;

 private:
  struct State {
    std::vector<Device> devices;
    std::map<std::string, OfferedVf> vfs;         // by name
    std::map<std::string, std::string> problems;  // by VF
  };
  State Now();
  grpc::Status CheckIds(const State& state, const v1beta1::ContainerAllocateRequest& request,
                        std::vector<std::string>* vfs) const;
  void Deliver(const State& state, const std::vector<std::string>& vfs,
               v1beta1::ContainerAllocateResponse* response) const;

  const Resource resource_;
  const Delivery delivery_;
  const std::function<Result<void>(const std::string&)> reset_;
  std::atomic<int> watchers_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_;
  uint64_t version_ = 1;
  bool stopped_ = false;
};

}  // namespace vgpud::kubernetes
