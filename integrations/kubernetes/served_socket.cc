// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/served_socket.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

namespace vgpud::kubernetes {
namespace {

constexpr int kMostRequestBytes = 1 << 20;

}  // namespace

ServedSocket::ServedSocket(std::string path, std::vector<grpc::Service*> services, int threads)
    : path_(std::move(path)), services_(std::move(services)), threads_(threads) {}

ServedSocket::~ServedSocket() { End(); }

ServedSocket::FileId ServedSocket::Identify(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return fmt::format("{}:{}:{}.{}", status.st_dev, status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

void ServedSocket::End() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  // gRPC removes a socket that is its own; one that somebody else has put there meanwhile is not ours.
  if (Identify(path_) == own_ && !own_.empty()) ::unlink(path_.c_str());
  own_.clear();
}

Result<bool> ServedSocket::Keep() {
  if (server_ && Identify(path_) == own_) return false;
  End();
  ::unlink(path_.c_str());  // of one that was killed
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("vgpud");
  quota.SetMaxThreads(threads_);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMostRequestBytes);
  builder.AddListeningPort("unix:" + path_, grpc::InsecureServerCredentials());
  for (grpc::Service* const service : services_) builder.RegisterService(service);
  server_ = builder.BuildAndStart();
  own_ = Identify(path_);
  if (server_ && !own_.empty()) return true;
  server_.reset();
  return Fail(std::errc::io_error, fmt::format("{} can't be served: is its directory kubelet's?", path_));
}

}  // namespace vgpud::kubernetes
