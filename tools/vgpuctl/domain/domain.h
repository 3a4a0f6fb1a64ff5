// SPDX-License-Identifier: Apache-2.0
// One domain of libvirt, as vgpuctl needs it. Without libvirt's library (build option libvirt) opening one says so.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vgpud::tools {

class Libvirt;

class Domain {
 public:
  Domain(Domain&&) noexcept;
  ~Domain();
  bool IsRunning() const;
  bool IsPersistent() const;
  // As it is now, or as it will be started; with passwords, so that it can be defined again.
  [[nodiscard]] Result<std::string> LiveXml() const;
  [[nodiscard]] Result<std::string> ConfigXml() const;
  // As virsh attach-device and detach-device, in the running domain, in its configuration or in both. A guest may take
  // its time to let a device go.
  [[nodiscard]] Result<void> AttachDevice(const std::string& xml, bool live, bool config) const;
  [[nodiscard]] Result<void> DetachDevice(const std::string& xml, bool live, bool config) const;
  // A command of QEMU's monitor (QMP), and its whole answer; errors of QEMU are errors.
  [[nodiscard]] Result<std::string> Monitor(const std::string& command) const;
  // The note in the metadata of the running domain, without its namespace; empty: none.
  [[nodiscard]] Result<void> SetLiveNote(const std::string& xml) const;

 private:
  friend class Libvirt;
  struct Handle;
  explicit Domain(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

class Libvirt {
 public:
  // `uri` empty: libvirt's default.
  [[nodiscard]] static Result<Libvirt> Connect(const std::string& uri);
  Libvirt(Libvirt&&) noexcept;
  Libvirt& operator=(Libvirt&&) noexcept;
  ~Libvirt();

  // --- for those who watch: UseEvents once, before anything else of libvirt; one thread ---
  static void UseEvents();
  // May look and change nothing. A libvirt that hangs is noticed after some seconds.
  [[nodiscard]] static Result<Libvirt> ConnectToWatch(const std::string& uri);
  bool IsAlive() const;
  // Of all domains that run, begin to run or are about to end.
  [[nodiscard]] Result<std::vector<std::string>> RunningXml() const;
  // Returns when some domain of a watched connection has begun, ended or got other metadata, when a connection is lost,
  // or after `limit`.
  static void AwaitChange(std::chrono::milliseconds limit);
  [[nodiscard]] Result<Domain> Find(const std::string& name) const;
  // As virsh define: new or changed. Errors: nothing has changed. Returns the domain's name.
  [[nodiscard]] Result<std::string> Define(const std::string& xml) const;
  // What the domains of that <emulator>, architecture and machine (each empty: libvirt's choice) can have, as XML.
  [[nodiscard]] Result<std::string> Capabilities(const std::string& emulator, const std::string& architecture,
                                                 const std::string& machine, const std::string& type) const;
  // The configurations of all other domains than `name`, with their names.
  [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> Others(const std::string& name) const;

 private:
  struct Handle;
  explicit Libvirt(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

}  // namespace vgpud::tools
