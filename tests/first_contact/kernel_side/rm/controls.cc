// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/rm/controls.h"

#include <map>

#include "tests/first_contact/kernel_side/rm/quiet_controls.h"

namespace vgpud::kernel_side {
namespace {

struct Row {
  const Control* control;
  bool of_card;
};

std::map<uint32_t, Row> AllControls() {
  std::map<uint32_t, Row> rows;
  for (const Control& control : ClientControls()) rows[control.command] = {&control, false};
  for (const Control& control : CardControls()) rows[control.command] = {&control, true};
  for (const Control& control : ChannelControls()) rows[control.command] = {&control, true};
  return rows;
}

}  // namespace

RmStatus AnswerControl(const Asking& asking) {
  static const std::map<uint32_t, Row> rows = AllControls();
  if (const auto refusal = asking.machine.RefusalOf(asking.command)) return *refusal;
  const bool has_card = asking.object != nullptr && asking.object->card != nullptr;
  if (has_card && asking.card().lost) return RmStatus::kGpuIsLost;
  const auto it = rows.find(asking.command);
  if (it != rows.end()) {
    if (asking.params.size() < it->second.control->params_bytes) return RmStatus::kInvalidParamStruct;
    if (it->second.of_card && !has_card) return RmStatus::kInvalidObject;
    return it->second.control->answer(asking);
  }
  if (IsQuietControl(asking.command)) return RmStatus::kOk;
  return asking.machine.AnswerUnknown(asking.command);
}

}  // namespace vgpud::kernel_side
