// SPDX-License-Identifier: Apache-2.0
// TENSOR_MAP: the backend is told what was sent, and its map goes back.
#include <cstring>

#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

struct Sent {
  uint64_t seqno = 0;
  std::byte* at = nullptr;
};
Sent Send(ExecRig& rig, const vgpu_tensor_map_request& request, size_t bytes = sizeof(vgpu_tensor_map_request)) {
  const auto payload = rig.guest.Take(static_cast<uint32_t>(bytes));
  std::memcpy(payload.at, &request, bytes);
  return {rig.guest.Submit({VGPU_OP_TENSOR_MAP, {}, 0, payload}), payload.at};
}

TEST(TensorMap, IsWhatTheBackendMakesOfTheRequest) {
  ExecRig rig;
  rig.Grant();
  vgpu_tensor_map_request request{};
  request.kind = VGPU_TENSOR_MAP_IM2COL;
  request.rank = 4;
  request.address = 0x123400;
  request.stride[3] = 5;
  request.upper[2] = -7;
  const Sent sent = Send(rig, request);
  EXPECT_EQ(0u, rig.Status(sent.seqno));
  ASSERT_EQ(1u, rig.script->tensor_maps.size());
  EXPECT_EQ(0, std::memcmp(&request, rig.script->tensor_maps.data(), sizeof request));
  std::memset(request.map, 0x5a, sizeof request.map);
  EXPECT_EQ(0, std::memcmp(&request, sent.at, sizeof request));
}

TEST(TensorMap, ARefusalIsTheBackendsAndChangesNothing) {
  ExecRig rig;
  rig.Grant();
  vgpu_tensor_map_request request{};
  request.kind = 9;
  const Sent sent = Send(rig, request);
  EXPECT_EQ(1u, rig.Status(sent.seqno));
  EXPECT_EQ("no map of kind 9", rig.error_text());
  EXPECT_EQ(0, std::memcmp(&request, sent.at, sizeof request));
}

TEST(TensorMap, ARequestThatIsCutOffIsRefused) {
  ExecRig rig;
  rig.Grant();
  EXPECT_EQ(1u, rig.Status(Send(rig, {}, sizeof(vgpu_tensor_map_request) - 1).seqno));
  EXPECT_TRUE(rig.script->tensor_maps.empty());
}

}  // namespace
}  // namespace vgpud::exec
