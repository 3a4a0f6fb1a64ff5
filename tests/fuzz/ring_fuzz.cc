// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: a whole executor core with the soft GPU behind a channel area that the input writes: header words,
// ring entries, payload bytes, indices that move. Whenever the core calls its host, some more of the area changes.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/exec/channel_engine.h"
#include "gpu/soft/soft_gpu.h"
#include "tests/fuzz/fuzz_bytes.h"

namespace vgpud::exec {
namespace {

constexpr uint64_t kQuota = 4 << 20;
constexpr uint64_t kSteps = 64;
constexpr std::string_view kImage =
    ".version 7.0\n.target sm_75\n.address_size 64\n.global .b64 g;\n.visible .entry a(.param .u64 out, .param .u32 "
    "n)\n{\n"
    ".reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p; .shared .b32 s[8];\nld.param.u64 %d0, [out]; ld.param.u32 %r0, "
    "[n]; "
    "mov.u32 %r1, %tid.x;\nL: st.global.u32 [%d0], %r1; atom.shared.add.u32 %r2, [s], 1; sub.u32 %r0, %r0, 1; "
    "setp.ne.u32 %p, %r0, 0; @%p bra L;\nret;\n}\n";

class Ring {
 public:
  explicit Ring(FuzzBytes& in) : in_(in), words_(VGPU_CHANNEL_MIN_BYTES / 8) {
    auto& header = Header();
    header.magic = VGPU_MAGIC;
    header.abi_version = VGPU_ABI_VERSION;
    header.payload_bytes = in_.Chance(16) ? in_.Number() : 0x10000;
    if (in_.Chance(64)) header.magic = static_cast<uint32_t>(in_.Number());
    const auto memory = ChannelMemory::Open(area());
    if (!memory) return;
    payload_bytes_ = memory->payload_bytes();
    core_.emplace(*memory, kQuota,
                  ChannelCallbacks{
                      .interrupt = [this] { Disturb(); },
                      .progress = [this] { AnswerJob(); },
                      .make_gpu = [] { return std::make_unique<soft::SoftGpu>(kQuota, soft::BestIsa()); },
                      .now_ns =
                          [this] {
                            Disturb();
                            return ++now_;
                          },
                  });
  }
  void Run() {
    if (!core_) return;
    if (!in_.Chance(4)) Prepare();
    for (uint64_t n = 0; n < kSteps && !in_.empty(); ++n) {
      Step();
      Settle();
    }
    core_->Close();
  }

 private:
  std::span<std::byte> area() { return std::as_writable_bytes(std::span(words_)); }
  vgpu_channel_header& Header() { return *reinterpret_cast<vgpu_channel_header*>(words_.data()); }
  std::byte* Payload(uint64_t position) {
    return area().data() + VGPU_CHANNEL_PAYLOAD_OFFSET + position % payload_bytes_;
  }

  void Put(vgpu_sqe sqe) {
    std::memcpy(area().data() + VGPU_CHANNEL_SQ_OFFSET + tail_ % VGPU_SQ_ENTRIES * sizeof sqe, &sqe, sizeof sqe);
    Header().sq_tail = ++tail_;
  }
  // The next payload span of that length, skipping to its start when it would wrap.
  void Span(vgpu_sqe& sqe, uint32_t bytes) {
    if (payload_ % payload_bytes_ + bytes > payload_bytes_) payload_ = (payload_ / payload_bytes_ + 1) * payload_bytes_;
    sqe.payload_pos = payload_;
    sqe.payload_len = bytes;
    payload_ += bytes;
  }
  vgpu_sqe Entry(uint32_t op, std::initializer_list<uint64_t> args = {}) {
    vgpu_sqe sqe{};
    sqe.op = op;
    sqe.flags = VGPU_SQE_WANT_COMPLETION;
    sqe.seqno = seqno_++;
    std::copy(args.begin(), args.end(), sqe.args);
    return sqe;
  }
  // A loaded module with a kernel of handle 1, and memory.
  void Prepare() {
    Put(Entry(VGPU_OP_MODULE_BEGIN, {1, kImage.size()}));
    vgpu_sqe data = Entry(VGPU_OP_MODULE_DATA, {1, 0});
    Span(data, static_cast<uint32_t>(kImage.size()));
    std::memcpy(Payload(data.payload_pos), kImage.data(), kImage.size());
    Put(data);
    Put(Entry(VGPU_OP_MODULE_LOAD, {1}));
    vgpu_sqe function = Entry(VGPU_OP_MODULE_FUNCTION, {1, 1});
    Span(function, 256);
    *Payload(function.payload_pos) = std::byte{'a'};
    Put(function);
    Put(Entry(VGPU_OP_MEM_ALLOC, {65536}));
    Settle();
  }
  uint64_t Argument() {
    static constexpr uint64_t kGood[] = {0x700000000000, 0x700000000200, 1, 2, 1, 16, 0};
    return in_.Chance(3) ? in_.Number() : in_.Of(kGood);
  }
  void Step() {
    switch (in_.Pick(10)) {
      case 0:
        Header().sq_tail = tail_ += in_.Chance(4) ? static_cast<uint32_t>(in_.Number()) : 1;
        break;
      case 1:
        Header().cq_head = in_.Chance(4) ? static_cast<uint32_t>(in_.Number()) : Header().cq_tail;
        break;
      case 2:
        Scribble();
        break;
      case 3:
        Header().gate[in_.Byte()] = in_.Number();
        break;
      default:
        Submit();
        break;
    }
  }
  void Submit() {
    const uint32_t op = in_.Pick(VGPU_OP_COUNT + 1);
    vgpu_sqe sqe = Entry(op);
    static constexpr uint32_t kStreams[] = {0, 0, 2, 16, 17, 99};
    sqe.stream = in_.Of(kStreams);
    sqe.flags = in_.Byte() & 1;
    const OpRow* spec = FindOp(op);
    for (unsigned n = 0; spec != nullptr && n < spec->rules.args; ++n) sqe.args[n] = Argument();
    if (spec != nullptr && spec->rules.payload != PayloadRule::kNone && !in_.Chance(8)) {
      static constexpr uint32_t kLengths[] = {1, 8, 48, 200, 1160, 5000};
      Span(sqe, in_.Of(kLengths));
      const auto bytes = in_.Take(in_.Pick(2) * sqe.payload_len % 64);
      std::memset(Payload(sqe.payload_pos), 0, sqe.payload_len);
      if (!bytes.empty())
        std::memcpy(Payload(sqe.payload_pos), bytes.data(), std::min<size_t>(bytes.size(), sqe.payload_len));
      if (op == VGPU_OP_LAUNCH && sqe.payload_len >= sizeof(vgpu_launch) + 16 && !in_.Chance(4)) Launch(sqe);
      if (op == VGPU_OP_TEXTURE_CREATE && !in_.Chance(3)) Texture(sqe);
    }
    if (in_.Chance(16)) Damage(sqe);
    Put(sqe);
  }
  void Launch(const vgpu_sqe& sqe) {
    vgpu_launch launch{};
    for (uint32_t* extent :
         {&launch.grid[0], &launch.grid[1], &launch.grid[2], &launch.block[0], &launch.block[1], &launch.block[2]})
      *extent = in_.Chance(12) ? static_cast<uint32_t>(in_.Number()) : 1 + in_.Pick(3);
    launch.dynamic_shared = in_.Chance(8) ? static_cast<uint32_t>(in_.Number()) : 0;
    launch.param_bytes = in_.Chance(8) ? static_cast<uint32_t>(in_.Number()) : 16;
    launch.flags = in_.Chance(8) ? in_.Byte() : 0;
    const uint64_t params[2] = {Argument(), 1 + uint64_t{in_.Byte()}};
    std::memcpy(Payload(sqe.payload_pos), &launch, sizeof launch);
    std::memcpy(Payload(sqe.payload_pos) + sizeof launch, params, sizeof params);
  }
  void Texture(vgpu_sqe& sqe) {
    vgpu_texture texture{};
    texture.shape = in_.Pick(6);
    texture.flags = in_.Byte();
    texture.width = static_cast<uint32_t>(in_.Number());
    texture.height = texture.depth = texture.layers = 1;
    texture.format = 0x20;
    texture.channels = 1 + in_.Pick(4);
    texture.levels = 1 + in_.Pick(2);
    vgpu_texture_level level{};
    level.address = Argument();
    level.pitch = in_.Number();
    std::memcpy(Payload(sqe.payload_pos), &texture, std::min<size_t>(sizeof texture, sqe.payload_len));
    if (sqe.payload_len < sizeof texture + 2 * sizeof level) return;
    for (uint32_t n = 0; n < texture.levels; ++n)
      std::memcpy(Payload(sqe.payload_pos) + sizeof texture + n * sizeof level, &level, sizeof level);
    sqe.payload_len = static_cast<uint32_t>(sizeof texture + texture.levels * sizeof level);
  }
  void Damage(vgpu_sqe& sqe) {
    auto* bytes = reinterpret_cast<uint8_t*>(&sqe);
    const uint64_t number = in_.Number();
    std::memcpy(bytes + in_.Pick(sizeof(vgpu_sqe) / 8) * 8, &number, sizeof number);
    if (in_.Chance(2)) seqno_ = sqe.seqno + 1;
  }
  void Scribble() {
    const size_t at = in_.Raw<uint32_t>() % (area().size() - 8);
    const uint64_t number = in_.Number();
    std::memcpy(area().data() + at, &number, sizeof number);
  }
  // The guest runs at the same time: now it has changed something.
  void Disturb() {
    if (disturbing_ || in_.empty() || !in_.Chance(16)) return;
    disturbing_ = true;
    Scribble();
    disturbing_ = false;
  }
  bool ServeLedger() {
    bool asked = false;
    while (const auto delta = core_->vram().TakeRequest()) {
      const bool ok = *delta <= 0 || vf_used_ + static_cast<uint64_t>(*delta) <= kQuota;
      if (ok) vf_used_ += static_cast<uint64_t>(*delta);
      core_->vram().OnReply(*delta, ok, vf_used_);
      asked = true;
    }
    return asked;
  }
  // A job waits for the ring side, which is another thread in an executor.
  void AnswerJob() {
    for (int look = 0; job_runs_ && look < 4; ++look) {
      core_->ConsumeOne();
      ServeLedger();
    }
  }
  void Settle() {
    std::atomic<uint32_t> word{0};
    for (int round = 0; round < 40; ++round) {
      ChannelEngine::Ring ring = core_->ConsumeOne(false);
      if (ring == ChannelEngine::Ring::kAlone) {
        Disturb();
        ring = core_->ConsumeOne();
      }
      if (ring == ChannelEngine::Ring::kCopy) {
        Disturb();
        core_->copy().Run();
      }
      bool more = ring == ChannelEngine::Ring::kMore || ring == ChannelEngine::Ring::kPart ||
                  ring == ChannelEngine::Ring::kLink || ring == ChannelEngine::Ring::kCopy;
      more |= ServeLedger();
      if (core_->loader().HasJob()) {
        LoadJob& job = core_->loader().Take();
        job_runs_ = true;
        job.result = core_->loader().Run(job);
        job_runs_ = false;
        more = true;
      }
      if (Op* op = core_->NextForGpu()) {
        core_->FinishStep(*op, core_->RunStep(*op, {&word, 0}, 500));
        more = true;
      }
      if (!more) return;
    }
  }

  FuzzBytes& in_;
  std::vector<uint64_t> words_;
  std::optional<ChannelEngine> core_;
  uint64_t payload_bytes_ = 1;
  uint64_t payload_ = 0;
  uint64_t seqno_ = 1;
  uint64_t now_ = 0;
  uint64_t vf_used_ = 0;
  uint32_t tail_ = 0;
  bool disturbing_ = false;
  bool job_runs_ = false;
};

}  // namespace
}  // namespace vgpud::exec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vgpud::FuzzBytes in(data, size);
  vgpud::exec::Ring(in).Run();
  return 0;
}
