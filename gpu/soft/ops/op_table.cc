// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/code/op_table.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/check.h"
#include "gpu/soft/ops/families.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {

#define DECLARE(family) OpRows family##Rows();
#define DECLARE_ISA(isa)           \
  namespace isa {                  \
  SOFT_FAMILIES(DECLARE)           \
  SOFT_REPLACING_FAMILIES(DECLARE) \
  }
DECLARE_ISA(isa_sse4)
DECLARE_ISA(isa_avx2)
DECLARE_ISA(isa_avx512)
namespace isa_common {
SOFT_COMMON_FAMILIES(DECLARE)
}  // namespace isa_common

bool CpuHas(Isa isa) {
#ifdef VGPUD_SOFT_ONLY_SSE4
  if (isa != Isa::kSse4) return false;
#endif
  __builtin_cpu_init();
  switch (isa) {
    case Isa::kSse4:
      return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    case Isa::kAvx512:
      return CpuHas(Isa::kAvx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512cd");
  }
  return false;
}

const char* NameOf(Isa isa) {
  constexpr const char* kNames[] = {"sse4", "avx2", "avx512"};
  return kNames[static_cast<int>(isa)];
}

Isa BestIsa() {
  const char* wish = std::getenv("VGPUD_SOFT_ISA");
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2})
    if (CpuHas(isa) && (wish == nullptr || std::string_view(wish) == NameOf(isa))) return isa;
  return wish != nullptr && std::string_view(wish) != NameOf(Isa::kSse4) && CpuHas(Isa::kAvx2) ? Isa::kAvx2
                                                                                               : Isa::kSse4;
}

const OpTable& OpTable::Of(Isa isa) {
  static const OpTable* tables[3] = {};
  static std::once_flag once[3];
  const auto n = static_cast<size_t>(isa);
  std::call_once(once[n], [&] { tables[n] = new OpTable(isa); });
  return *tables[n];
}

OpTable::OpTable(Isa isa) {
  Add(ControlRows());
#define ADD_COMMON(family) Add(isa_common::family##Rows());
  SOFT_COMMON_FAMILIES(ADD_COMMON)
#define ADD_SSE4(family) Add(isa_sse4::family##Rows(), replace);
#define ADD_AVX2(family) Add(isa_avx2::family##Rows(), replace);
#define ADD_AVX512(family) Add(isa_avx512::family##Rows(), replace);
#define ADD_ISA(ADD)             \
  {                              \
    bool replace = false;        \
    SOFT_FAMILIES(ADD)           \
    replace = true;              \
    SOFT_REPLACING_FAMILIES(ADD) \
  }
#ifdef VGPUD_SOFT_ONLY_SSE4
  static_cast<void>(isa);
  ADD_ISA(ADD_SSE4)
#else
  if (isa == Isa::kSse4) {
    ADD_ISA(ADD_SSE4)
  } else if (isa == Isa::kAvx2) {
    ADD_ISA(ADD_AVX2)
  } else {
    ADD_ISA(ADD_AVX512)
  }
#endif
}

void OpTable::Add(OpRows rows, bool replace) {
  for (size_t r = 0; r < rows.count; ++r) {
    const std::string_view name = rows.rows[r].name;
    std::string key(name);
    if (name[0] != '@') {
      std::vector<std::string_view> parts;
      for (size_t at = 0; at <= name.size();) {
        const size_t dot = std::min(name.find('.', at), name.size());
        parts.push_back(name.substr(at, dot - at));
        at = dot + 1;
      }
      const std::string_view opcode = parts.front();
      parts.erase(parts.begin());
      key = Key(opcode, parts);
    }
    const bool fresh = rows_.insert_or_assign(std::move(key), &rows.rows[r]).second;
    CHECK(fresh != replace);
  }
}

std::string OpTable::Key(std::string_view opcode, const std::vector<std::string_view>& modifiers) {
  std::vector<std::string_view> others;
  std::vector<std::string_view> types;
  for (const std::string_view m : modifiers) (ptx::TypeFromName(m) == ptx::Type::kNone ? others : types).push_back(m);
  std::sort(others.begin(), others.end());
  std::string key(opcode);
  for (const auto* part : {&others, &types}) {
    for (const std::string_view m : *part) {
      key += '.';
      key += m;
    }
  }
  return key;
}

std::vector<const OpRow*> OpTable::Rows() const {
  std::vector<const OpRow*> rows;
  for (const auto& [key, row] : rows_) rows.push_back(row);
  return rows;
}

const OpRow* OpTable::Find(std::string_view key) const {
  const auto it = rows_.find(std::string(key));
  return it == rows_.end() ? nullptr : it->second;
}

}  // namespace vgpud::soft
