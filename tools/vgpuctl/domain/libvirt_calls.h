// SPDX-License-Identifier: Apache-2.0
// libvirt's functions, found when the first of them is needed: its library and the fifty that come with it take longer
// to load than all that vgpuctl does without them. Inside of this namespace these names hide those of libvirt's
// headers.
#pragma once

#include <dlfcn.h>
#include <fmt/core.h>
#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace vgpud::tools::libvirt_calls {

#define VGPUD_LIBVIRT_CALLS(CALL)          \
  CALL(virConnectClose)                    \
  CALL(virConnectDomainEventDeregisterAny) \
  CALL(virConnectDomainEventRegisterAny)   \
  CALL(virConnectGetDomainCapabilities)    \
  CALL(virConnectIsAlive)                  \
  CALL(virConnectListAllDomains)           \
  CALL(virConnectOpen)                     \
  CALL(virConnectOpenReadOnly)             \
  CALL(virConnectRegisterCloseCallback)    \
  CALL(virConnectSetKeepAlive)             \
  CALL(virConnectUnregisterCloseCallback)  \
  CALL(virDomainAttachDeviceFlags)         \
  CALL(virDomainDefineXML)                 \
  CALL(virDomainDetachDeviceFlags)         \
  CALL(virDomainFree)                      \
  CALL(virDomainGetName)                   \
  CALL(virDomainGetXMLDesc)                \
  CALL(virDomainIsActive)                  \
  CALL(virDomainIsPersistent)              \
  CALL(virDomainLookupByName)              \
  CALL(virDomainLookupByUUIDString)        \
  CALL(virDomainSetMetadata)               \
  CALL(virEventAddTimeout)                 \
  CALL(virEventRegisterDefaultImpl)        \
  CALL(virEventRemoveTimeout)              \
  CALL(virEventRunDefaultImpl)             \
  CALL(virGetLastError)                    \
  CALL(virGetLastErrorMessage)             \
  CALL(virSetErrorFunc)

#define VGPUD_DECLARE_CALL(name) inline decltype(&::name) name = nullptr;
VGPUD_LIBVIRT_CALLS(VGPUD_DECLARE_CALL)
VGPUD_DECLARE_CALL(virDomainQemuMonitorCommand)
#undef VGPUD_DECLARE_CALL

template <class Call>
bool Find(void* library, const char* name, Call* call) {
  *call = reinterpret_cast<Call>(::dlsym(library, name));
  return *call != nullptr;
}

// Why they cannot be called.
inline std::optional<std::string> FindAll() {
  void* const library = ::dlopen("libvirt.so.0", RTLD_NOW | RTLD_LOCAL);
  void* const of_qemu = library != nullptr ? ::dlopen("libvirt-qemu.so.0", RTLD_NOW | RTLD_LOCAL) : nullptr;
  bool all = of_qemu != nullptr && Find(of_qemu, "virDomainQemuMonitorCommand", &virDomainQemuMonitorCommand);
#define VGPUD_FIND_CALL(name) all = all && Find(library, #name, &name);
  VGPUD_LIBVIRT_CALLS(VGPUD_FIND_CALL)
#undef VGPUD_FIND_CALL
  if (all) return std::nullopt;
  const char* const why = ::dlerror();
  return fmt::format("libvirt's library cannot be used: {} (install libvirt0)", why != nullptr ? why : "unknown");
}

// Before the first call.
[[nodiscard]] inline Result<void> Load() {
  static const std::optional<std::string> why_not = FindAll();
  if (why_not) return Fail(std::errc::no_such_file_or_directory, *why_not);
  return {};
}

}  // namespace vgpud::tools::libvirt_calls
