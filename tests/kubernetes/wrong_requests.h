// SPDX-License-Identifier: Apache-2.0
// Requests to a device plugin that are wrong, made from a number.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace vgpud::kubernetes {

[[nodiscard]] std::shared_ptr<grpc::Channel> MakeChannel(const std::string& path);

// Sends `count` requests: messages with devices that there are not, too many, twice or none, sizes that can't be, bytes
// that are no message, to methods that there are and are not. Returns how many got which answer: {status code: number};
// -1 for one that got none in 30 s.
[[nodiscard]] std::map<std::string, uint64_t> SendWrongRequests(const std::shared_ptr<grpc::Channel>& channel,
                                                                uint64_t count, uint64_t seed);

}  // namespace vgpud::kubernetes
