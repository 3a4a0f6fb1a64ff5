#include "gpu/soft/code/op_table.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/check.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {

#define DECLARE_ISA(isa)        \
  namespace isa {               \
  OpRows IntegerRows();         \
  OpRows LogicRows();           \
  OpRows MatrixRows();          \
  OpRows FloatRows();           \
  OpRows CompareRows();         \
  OpRows CastRows();            \
  OpRows MemoryRows();          \
  OpRows MmaRows();             \
  OpRows ShuffleRows();         \
  OpRows BfloatRows();          \
  OpRows BitRows();             \
  OpRows HalfRows();            \
  OpRows SmallArithmeticRows(); \
  OpRows SmallCompareRows();    \
  OpRows TextureRows();         \
  }
DECLARE_ISA(isa_sse4)
DECLARE_ISA(isa_avx2)
DECLARE_ISA(isa_avx512)
namespace isa_common {
OpRows AsyncRows();
OpRows AtomicRows();
OpRows ConvertRows();
OpRows RareIntegerRows();
OpRows SetRows();
OpRows SmallAtomicRows();
OpRows SurfaceRows();
OpRows SyncMemoryRows();
OpRows VideoRows();
OpRows WarpRows();
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
  Add(isa_common::AsyncRows());
  Add(isa_common::AtomicRows());
  Add(isa_common::ConvertRows());
  Add(isa_common::RareIntegerRows());
  Add(isa_common::SetRows());
  Add(isa_common::SmallAtomicRows());
  Add(isa_common::SurfaceRows());
  Add(isa_common::SyncMemoryRows());
  Add(isa_common::VideoRows());
  Add(isa_common::WarpRows());
#define ADD_ISA(name)               \
  Add(name::IntegerRows());         \
  Add(name::LogicRows());           \
  Add(name::MatrixRows());          \
  Add(name::FloatRows());           \
  Add(name::CompareRows());         \
  Add(name::CastRows(), true);      \
  Add(name::MemoryRows());          \
  Add(name::MmaRows());             \
  Add(name::ShuffleRows());         \
  Add(name::BfloatRows());          \
  Add(name::BitRows());             \
  Add(name::HalfRows());            \
  Add(name::SmallArithmeticRows()); \
  Add(name::SmallCompareRows());    \
  Add(name::TextureRows());
#ifdef VGPUD_SOFT_ONLY_SSE4
  static_cast<void>(isa);
  ADD_ISA(isa_sse4)
#else
  if (isa == Isa::kSse4) {
    ADD_ISA(isa_sse4)
  } else if (isa == Isa::kAvx2) {
    ADD_ISA(isa_avx2)
  } else {
    ADD_ISA(isa_avx512)
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
