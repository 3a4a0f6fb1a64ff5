// SPDX-License-Identifier: Apache-2.0
// Requests that are wrong, made from a number: to a device plugin, and to a DRA driver.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>

namespace vgpud::kubernetes {

[[nodiscard]] std::shared_ptr<grpc::Channel> MakeChannel(const std::string& path);

using Random = std::mt19937_64;

struct WrongRequest {
  std::string method;
  std::string bytes;
};

// Who is asked, and how.
struct WrongAsker {
  WrongRequest (*make)(Random& random);
  // Whether something was given away by an answer that is no error.
  bool (*gave)(const std::string& method, const std::string& response);
};

// Messages with devices that there are not, too many, twice or none, sizes that can't be, bytes that are no message, to
// methods that there are and are not.
extern const WrongAsker kToDevicePlugin;
// Claims that there are not, with names that are none, too many, twice or none.
extern const WrongAsker kToDraDriver;

// Sends `count` requests. Returns how many got which answer: {status code: number}; -1 for one that got none in 30 s,
// "given" for one that got something.
[[nodiscard]] std::map<std::string, uint64_t> SendWrongRequests(const std::shared_ptr<grpc::Channel>& channel,
                                                                const WrongAsker& asker, uint64_t count, uint64_t seed);

// Parts of wrong messages.
[[nodiscard]] uint64_t Below(Random& random, uint64_t end);
[[nodiscard]] std::string Bytes(Random& random, size_t most);
// With bits turned over, without its end, with something behind it, or as it is.
[[nodiscard]] std::string Damaged(Random& random, std::string message);

}  // namespace vgpud::kubernetes
