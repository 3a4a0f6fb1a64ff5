// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/card.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "gpu/cuda/mig.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::driver {
namespace {

// What an error of cuInit, or of making a context, comes from in practice, and what helps.
constexpr struct {
  Status status;
  const char* what;
} kHelp[] = {
    {cuda_enum::CUDA_ERROR_NO_DEVICE,
     "there is no GPU that this driver can use; see what nvidia-smi -L lists, whether CUDA_VISIBLE_DEVICES hides it, "
     "and where MIG mode is on, whether there is an instance (nvidia-smi mig -cgi ... -C)"},
    {cuda_enum::CUDA_ERROR_STUB_LIBRARY, "this is the toolkit's stub, not a driver: leave it out of the library path"},
    {cuda_enum::CUDA_ERROR_DEVICE_UNAVAILABLE,
     "another process has the GPU for itself; end it, or set its compute mode back: nvidia-smi -c DEFAULT"},
    {cuda_enum::CUDA_ERROR_SYSTEM_NOT_READY,
     "the GPUs of this machine are not ready; on one with NVSwitch start nvidia-fabricmanager"},
    {cuda_enum::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
     "libcuda and the kernel module are of different versions; restart the machine or load the module again"},
    {cuda_enum::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
     "this libcuda is a compatibility package that the GPU does not support; use the driver's own"},
    {cuda_enum::CUDA_ERROR_OPERATING_SYSTEM,
     "the driver's device files can't be used, or a file of /proc that it wants; see whether the kernel module is "
     "loaded (modprobe nvidia), who may open /dev/nvidia*, and whether /proc of this process is its own "
     "(docs/first-contact.md)"},
    {cuda_enum::CUDA_ERROR_UNKNOWN,
     "the driver did not say why; see dmesg for NVRM and Xid lines, and whether nvidia-uvm is loaded"},
    {cuda_enum::CUDA_ERROR_ECC_UNCORRECTABLE,
     "the GPU has an uncorrectable memory error; reset it when nobody uses it (nvidia-smi -r)"},
    {cuda_enum::CUDA_ERROR_OUT_OF_MEMORY,
     "the GPU has no memory left for a context; see nvidia-smi for who has it, or give VFs less"},
    {cuda_enum::CUDA_ERROR_NOT_PERMITTED, "this process may not use the GPU"},
};

constexpr int kComputeModeDefault = 0, kComputeModeProhibited = 2;

Error Explain(const Api& api, const char* call, Status status, const Card::Choice& choice) {
  if (choice.refused != nullptr) *choice.refused = status;
  std::string text = fmt::format("the GPU can't be used: {}: {}", call, api.Describe(status));
  for (const auto& row : kHelp)
    if (row.status == status) text += fmt::format(". {}", row.what);
  return {std::errc::no_such_device, std::move(text)};
}

}  // namespace

Result<std::unique_ptr<Card>> Card::Open(const Choice& choice) {
  Api loaded = TRY(LoadApi(choice.library));
  std::unique_ptr<Card> card(new Card(std::move(loaded)));
  card->best_rung_ = choice.best_rung;
  card->maps_host_memory_ = choice.maps_host_memory;
  TRY(card->Find(choice));
  const Api& api = card->api_;
  if (const int mode = card->Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE); mode != kComputeModeDefault)
    return Fail(
        std::errc::device_or_resource_busy,
        fmt::format("the GPU {} ({}) is in the compute mode {}, and programs of several VFs have a context each; "
                    "set it back: nvidia-smi -i {} -c DEFAULT",
                    card->address_, card->name_, mode == kComputeModeProhibited ? "PROHIBITED" : "EXCLUSIVE_PROCESS",
                    card->address_));
  // A thread that waits for the GPU sleeps.
  (void)api.DevicePrimaryCtxSetFlags(card->device_, kContextBlockingSync);
  if (const Status status = card->Retain(); status != kOk)
    return tl::unexpected(Explain(api, "cuDevicePrimaryCtxRetain", status, choice));
  card->shares_memory_ = card->Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED) != 0;
  card->maps_memory_ = card->KeepMappedAddresses();
  card->moves_memory_ = choice.oversubscribe && card->maps_memory_;
  if (choice.oversubscribe && !card->maps_memory_)
    return Fail(
        std::errc::not_supported,
        fmt::format("the GPU {} ({}) can't have more memory promised than it has: its driver gives no addresses "
                    "for memory that comes and goes; leave out --cuda-oversubscribe",
                    card->address_, card->name_));
  return card;
}

bool Card::KeepMappedAddresses() const {
  if (Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0) return false;
  const MemoryProperties told{.location = location()};
  size_t grain = 0;
  if (api_.MemGetAllocationGranularity(&grain, &told, 0) != kOk || grain == 0 || VGPU_MAPPED_GRAIN % grain != 0)
    return false;
  DevicePtr at = 0;
  if (api_.MemAddressReserve(&at, VGPU_MAPPED_BYTES, VGPU_MAPPED_GRAIN, VGPU_MAPPED_VA, 0) != kOk) return false;
  if (at == VGPU_MAPPED_VA) return true;
  (void)api_.MemAddressFree(at, VGPU_MAPPED_BYTES);
  return false;
}

Result<void> Card::Find(const Choice& choice) {
  const bool mig = IsMigName(choice.address);
  if (mig) SeeOnlyMig(choice.address);
  const auto no_instance = [&](Status status) {
    if (choice.refused != nullptr) *choice.refused = status;
    return Fail(std::errc::no_such_device,
                fmt::format("there is no MIG instance {} that the CUDA driver gives this process ({}); nvidia-smi -L "
                            "lists them, and nvidia-smi mig makes them",
                            choice.address, api_.Describe(status)));
  };
  if (const Status status = api_.Init(0); mig && status == cuda_enum::CUDA_ERROR_NO_DEVICE)
    return no_instance(status);
  else if (status != kOk)
    return tl::unexpected(Explain(api_, "cuInit", status, choice));
  (void)api_.DriverGetVersion(&driver_version_);
  if (choice.address.empty() || mig) {
    if (const Status status = api_.DeviceGet(&device_, 0); status != kOk)
      return tl::unexpected(Explain(api_, "cuDeviceGet", status, choice));
  } else if (const Status status = api_.DeviceGetByPCIBusId(&device_, choice.address.c_str()); status != kOk) {
    if (choice.refused != nullptr) *choice.refused = status;
    return Fail(std::errc::no_such_device,
                fmt::format("there is no GPU at {} that the CUDA driver knows ({}); nvidia-smi -L lists them",
                            choice.address, api_.Describe(status)));
  }
  if (mig && !IsMig(api_, device_, choice.address)) return no_instance(cuda_enum::CUDA_ERROR_INVALID_DEVICE);
  mig_name_ = mig ? choice.address : MigNameOf(api_, device_);
  std::array<char, 256> name{};
  std::array<char, 32> address{};
  if (api_.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device_) == kOk) name_ = name.data();
  if (api_.DeviceGetPCIBusId(address.data(), static_cast<int>(address.size()) - 1, device_) == kOk)
    address_ = address.data();
  multiprocessors_ = static_cast<uint32_t>(std::max(Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 0));
  size_t bytes = 0;
  if (api_.DeviceTotalMem(&bytes, device_) == kOk) memory_bytes_ = bytes;
  return {};
}

Status Card::Retain() {
  Context context = nullptr;
  const Status status = api_.DevicePrimaryCtxRetain(&context, device_);
  if (status != kOk) return status;
  context_ = context;
  Bind();
  return kOk;
}

Status Card::Reset() {
  Bind();
  if (const Status status = api_.DevicePrimaryCtxReset(device_); status != kOk) return status;
  // The old handle is of no use until the context is asked for again.
  if (const Status status = Retain(); status != kOk) return status;
  // Whether kept addresses outlive a context is not documented: where they do, they are not to be had again.
  if (maps_memory_) (void)KeepMappedAddresses();
  return kOk;
}

int Card::Attribute(uint32_t attribute) const {
  int value = 0;
  return api_.DeviceGetAttribute(&value, static_cast<int>(attribute), device_) == kOk ? value : 0;
}

uint32_t Card::capability() const {
  return static_cast<uint32_t>(10 * Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                               Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

Gpu::DeviceInfo Card::Describe() const {
  Gpu::DeviceInfo info{name_, std::vector<int32_t>(VGPU_DEVICE_ATTRIBUTES)};
  static_assert(cuda_enum::CU_DEVICE_ATTRIBUTE_MAX <= VGPU_ATTRIBUTE_TENSOR_MAPS_BY_HOST);
  for (uint32_t a = 1; a < cuda_enum::CU_DEVICE_ATTRIBUTE_MAX; ++a) info.attributes[a] = Attribute(a);
  // What this backend does not do for guests, whatever the driver can.
  info.attributes[VGPU_ATTRIBUTE_SHARED_BUFFERS] = shares_memory_ ? 1 : 0;
  info.attributes[VGPU_ATTRIBUTE_MAPPABLE_MEMORY] = maps_memory_ ? 1 : 0;
  // Managed variables of modules have two sides.
  info.attributes[VGPU_ATTRIBUTE_MANAGED_IN_TURNS] = 1;
  info.attributes[cuda_enum::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS] = 0;
  // Kernels have registered memory where this process has it, which is not where the program has it.
  info.attributes[cuda_enum::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM] = 0;
  info.attributes[cuda_enum::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED] = 0;
  info.attributes[cuda_enum::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 0;
  // A guest's libcuda that knows nothing of TENSOR_MAP writes the maps of the soft GPU (uapi/vgpu_tensor_map.h), which
  // the card would not know: it hears that there are none.
  int32_t& has_maps = info.attributes[cuda_enum::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED];
  info.attributes[VGPU_ATTRIBUTE_TENSOR_MAPS_BY_HOST] = has_maps;
  has_maps = 0;
  return info;
}

uint64_t Card::MeasureContextBytes() const {
  Bind();
  size_t before = 0, after = 0, total = 0;
  Context second = nullptr;
  if (api_.MemGetInfo(&before, &total) != kOk || api_.CtxCreate(&second, 0, device_) != kOk) return 0;
  const Status measured = api_.MemGetInfo(&after, &total);
  (void)api_.CtxDestroy(second);
  Bind();
  return measured == kOk && before > after ? before - after : 0;
}

}  // namespace vgpud::driver
