// SPDX-License-Identifier: Apache-2.0
// Services of gRPC on a socket in a directory that others use as well: served again when somebody removed it or put
// something in its place. One thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace vgpud::kubernetes {

class ServedSocket {
 public:
  // `services` outlive it. `threads`: the most at once.
  ServedSocket(std::string path, std::vector<grpc::Service*> services, int threads);
  ~ServedSocket();
  ServedSocket(const ServedSocket&) = delete;
  ServedSocket& operator=(const ServedSocket&) = delete;

  // Which file it is; empty when there is none.
  using FileId = std::string;
  static FileId Identify(const std::string& path);

  // Serves it, if it is not served. True: it was not until now.
  [[nodiscard]] Result<bool> Keep();
  // Waits for no call. Can be done twice.
  void End();

 private:
  const std::string path_;
  const std::vector<grpc::Service*> services_;
  const int threads_;
  std::unique_ptr<grpc::Server> server_;
  FileId own_;  // as it was when we began to serve
};

}  // namespace vgpud::kubernetes
