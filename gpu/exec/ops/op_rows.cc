// SPDX-License-Identifier: Apache-2.0
// All rows in the order of their codes.
#include <array>
#include <span>

#include "gpu/exec/ops/buffer_ops.h"
#include "gpu/exec/ops/device_ops.h"
#include "gpu/exec/ops/memory_ops.h"
#include "gpu/exec/ops/module_ops.h"
#include "gpu/exec/ops/queue_ops.h"
#include "gpu/exec/ops/runtime_ops.h"
#include "gpu/exec/ops/texture_ops.h"

namespace vgpud::exec {
namespace {

struct Table {
  std::array<OpRow, VGPU_OP_COUNT> rows{};
  bool wrong = false;
};

constexpr Table MakeTable() {
  Table table;
  for (const std::span<const OpRow> topic :
       {std::span<const OpRow>(kBufferRows), std::span<const OpRow>(kDeviceRows), std::span<const OpRow>(kMemoryRows),
        std::span<const OpRow>(kModuleRows), std::span<const OpRow>(kQueueRows), std::span<const OpRow>(kRuntimeRows),
        std::span<const OpRow>(kTextureRows)})
    for (const OpRow& row : topic) {
      table.wrong = table.wrong || row.code >= VGPU_OP_COUNT || table.rows[row.code].name != nullptr;
      if (!table.wrong) table.rows[row.code] = row;
    }
  for (const OpRow& row : table.rows) table.wrong = table.wrong || row.name == nullptr;
  return table;
}

constexpr Table kTable = MakeTable();
static_assert(!kTable.wrong, "an operation of vgpu_abi.h has no row, or two");

}  // namespace

const OpRow* FindOp(uint32_t op) { return op < VGPU_OP_COUNT ? &kTable.rows[op] : nullptr; }

}  // namespace vgpud::exec
