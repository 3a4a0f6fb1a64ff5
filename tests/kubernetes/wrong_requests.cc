// SPDX-License-Identifier: Apache-2.0
#include "tests/kubernetes/wrong_requests.h"

#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "integrations/kubernetes/deviceplugin.pb.h"

namespace vgpud::kubernetes {

uint64_t Below(Random& random, uint64_t end) { return random() % end; }

std::string Bytes(Random& random, size_t most) {
  std::string bytes(Below(random, most + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string Damaged(Random& random, std::string message) {
  const uint64_t change = Below(random, 6);
  if (change == 0 && !message.empty())
    message[Below(random, message.size())] ^= static_cast<char>(1 + Below(random, 255));
  if (change == 1) message.resize(Below(random, message.size() + 1));
  if (change == 2) message += Bytes(random, 20);
  return message;
}

namespace {

// Near to ids that there are, none of them one: those end with a digit of a VF or a replica.
std::string Id(Random& random) {
  switch (Below(random, 8)) {
    case 0:
      return "";
    case 1:
      return fmt::format("k8s-vf-{}", 1000 + Below(random, 1000));
    case 2:
      return fmt::format("k8s-vf-{}::{}", Below(random, 4), 64 + Below(random, 1000));
    case 3:
      return fmt::format("k8s-vf-0/../../{}", Below(random, 10));
    case 4:
      return std::string(Below(random, 5000), 'k');
    case 5:
      return fmt::format("k8s-vf-0%{}n\n\x1b[2J", Below(random, 10));
    case 6:
      return "k8s-vf-18446744073709551617";
    default:
      return fmt::format("x{:x}", random());  // a string must be UTF-8, or it is no message
  }
}

// A message may be larger than the plugin takes (1 MiB), but making it should not take longer than refusing it.
constexpr size_t kMostBytes = 5 << 18;

// Returns how many bytes they have.
template <class Add>
size_t Ids(Random& random, const Add& add) {
  const uint64_t count = Below(random, 500) == 0 ? 20000 : Below(random, 6);
  const std::string same = Id(random);
  const bool repeat = Below(random, 3) == 0;
  size_t bytes = 0;
  for (uint64_t i = 0; i < count && bytes < kMostBytes; ++i) {
    const std::string id = repeat ? same : Id(random);
    add(id);
    bytes += id.size();
  }
  return bytes;
}

std::string Message(Random& random) {
  if (Below(random, 4) == 0) return Bytes(random, 300);
  std::string text;
  size_t bytes = 0;
  if (Below(random, 2) == 0) {
    v1beta1::AllocateRequest request;
    for (uint64_t i = Below(random, 200) == 0 ? 1000 : Below(random, 4); i > 0 && bytes < kMostBytes; --i) {
      auto* const container = request.add_container_requests();
      bytes += Ids(random, [&](const std::string& id) { container->add_devices_ids(id); });
      container->add_devices_ids(Id(random));
    }
    request.SerializeToString(&text);
  } else {
    v1beta1::PreferredAllocationRequest request;
    for (uint64_t i = Below(random, 200) == 0 ? 1000 : 1 + Below(random, 3); i > 0 && bytes < kMostBytes; --i) {
      auto* const container = request.add_container_requests();
      bytes += Ids(random, [&](const std::string& id) { container->add_available_deviceids(id); });
      bytes += Ids(random, [&](const std::string& id) { container->add_must_include_deviceids(id); });
      container->add_available_deviceids(Id(random));
      container->set_allocation_size(static_cast<int32_t>(random()));
    }
    request.SerializeToString(&text);
  }
  return Damaged(random, std::move(text));
}

const char* Method(Random& random) {
  constexpr const char* kMethods[] = {"Allocate",
                                      "Allocate",
                                      "Allocate",
                                      "GetPreferredAllocation",
                                      "GetPreferredAllocation",
                                      "PreStartContainer",
                                      "GetDevicePluginOptions",
                                      "Deallocate"};
  return kMethods[Below(random, std::size(kMethods))];
}

WrongRequest Make(Random& random) {
  return {.method = fmt::format("/v1beta1.DevicePlugin/{}", Method(random)), .bytes = Message(random)};
}

// What an Allocate gave away, if it did.
bool Gave(const std::string& method, const std::string&) { return method.ends_with("/Allocate"); }

}  // namespace

const WrongAsker kToDevicePlugin{.make = &Make, .gave = &Gave};

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& path) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), own);
}

namespace {

constexpr uint64_t kInFlight = 16;  // fewer than the plugin's threads: more would only be turned away at its door
constexpr auto kPatience = std::chrono::seconds(30);

struct Call {
  std::string method;
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

void Send(const WrongAsker& asker, Random& random, grpc::GenericStub& stub, grpc::CompletionQueue& queue) {
  auto call = std::make_unique<Call>();
  const WrongRequest wrong = asker.make(random);
  call->method = wrong.method;
  const grpc::Slice slice(wrong.bytes);
  const grpc::ByteBuffer request(&slice, 1);
  call->context.set_deadline(std::chrono::system_clock::now() + kPatience);
  call->reader = stub.PrepareUnaryCall(&call->context, call->method, request, &queue);
  call->reader->StartCall();
  Call* const sent = call.release();  // comes back out of the queue
  sent->reader->Finish(&sent->response, &sent->status, sent);
}

std::string Flat(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (buffer.Valid() && buffer.Dump(&slices).ok())
    for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

std::string Answer(const WrongAsker& asker, const Call& call, bool ok) {
  if (!ok || call.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return "-1";
  if (call.status.ok() && asker.gave(call.method, Flat(call.response))) return "given";
  return std::to_string(call.status.error_code());
}

}  // namespace

std::map<std::string, uint64_t> SendWrongRequests(const std::shared_ptr<grpc::Channel>& channel,
                                                  const WrongAsker& asker, uint64_t count, uint64_t seed) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  std::map<std::string, uint64_t> answers;
  Random random(seed);
  uint64_t sent = 0;
  for (; sent < std::min(count, kInFlight); ++sent) Send(asker, random, stub, queue);
  for (uint64_t answered = 0; answered < count; ++answered) {
    void* tag = nullptr;
    bool ok = false;
    if (!queue.Next(&tag, &ok)) break;
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    ++answers[Answer(asker, *call, ok)];
    if (sent < count) Send(asker, random, stub, queue);
    ++sent;
  }
  queue.Shutdown();
  return answers;
}

}  // namespace vgpud::kubernetes
