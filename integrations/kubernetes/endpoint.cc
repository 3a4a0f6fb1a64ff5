// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/endpoint.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>

#include "base/log.h"

namespace vgpud::kubernetes {
namespace {

constexpr const char* kVersion = "v1beta1";
constexpr int kMostThreads = 24;  // of which each ListAndWatch has one
constexpr auto kPatience = std::chrono::seconds(10);

}  // namespace

Endpoint::Endpoint(std::string directory, Resource resource, Delivery delivery,
                   std::function<Result<void>(const std::string&)> reset)
    : directory_(std::move(directory)),
      name_(fmt::format("vgpud-{}.sock", resource.label)),
      resource_(resource),
      service_(std::move(resource), std::move(delivery), std::move(reset)),
      socket_(fmt::format("{}/{}", directory_, name_), {&service_}, kMostThreads) {}

Endpoint::~Endpoint() {
  service_.Stop();
  socket_.End();
}

Result<void> Endpoint::Register() {
  const std::string socket = directory_ + "/kubelet.sock";
  const auto kubelet = ServedSocket::Identify(socket);
  if (kubelet.empty())
    return Fail(std::errc::no_such_file_or_directory, fmt::format("there is no kubelet at {}", socket));
  v1beta1::RegisterRequest request;
  request.set_version(kVersion);
  request.set_endpoint(name_);
  request.set_resource_name(resource_.name);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  grpc::ChannelArguments fresh;
  fresh.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // not the connection to a kubelet that is gone
  const auto channel = grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), fresh);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1beta1::Empty empty;
  const grpc::Status status = v1beta1::Registration::NewStub(channel)->Register(&context, request, &empty);
  if (!status.ok())
    return Fail(std::errc::io_error, fmt::format("kubelet at {} does not take it: {}", socket, status.error_message()));
  registered_ = kubelet;
  LOG(kInfo, "{} is registered with kubelet", resource_.name);
  return {};
}

void Endpoint::Keep() {
  const auto served = socket_.Keep();
  Result<void> done = served ? Result<void>() : tl::unexpected(served.error());
  if (served.value_or(false) || registered_ != ServedSocket::Identify(directory_ + "/kubelet.sock"))
    registered_.clear();
  if (done && registered_.empty()) done = Register();
  const std::string problem = done ? "" : done.error().context;
  if (problem != problem_ && !problem.empty()) LOG(kWarning, "{}: {}", resource_.name, problem);
  problem_ = problem;
}

}  // namespace vgpud::kubernetes
