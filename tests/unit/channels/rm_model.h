// SPDX-License-Identifier: Apache-2.0
// A small honest model of the resource manager: objects with owners, what its controls do to channels, and every
// refusal that is known of it (docs/cuda-channels.md). It does nothing that the driver's sources do not say, and where
// only the firmware knows, it is told.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/channels/rm_file.h"

namespace rm_model {

using vgpud::rm::Command;

struct Settings {
  uint32_t schedule_bytes = 3;
  bool firmware_disables = true;      // false: a driver that does not run on the GPU itself
  bool unscheduling_stops = false;    // without a preempt; nobody knows
  bool checks_listed_clients = true;  // of DisableChannels: the firmware refuses channels of other clients
  bool privileged = false;            // root or CAP_SYS_NICE
};

class Model;

// An open file. Copies of a descriptor, in whatever process, are the same one: share the pointer.
class File final : public vgpud::rm::RmFile {
 public:
  explicit File(Model& model) : model_(model) {}
  ~File() override;
  int Ioctl(unsigned long request, void* argument) const override;

 private:
  Model& model_;
};

class Model {
 public:
  explicit Model(Settings settings = {}) : settings_(settings) {}

  // open("/dev/nvidiactl").
  std::shared_ptr<File> Open() { return std::make_shared<File>(*this); }

  // Would the GPU run this channel's work? A channel that is bound, enabled, and of a group that is on the runlist, or
  // was taken from it and not preempted yet.
  bool Runs(uint32_t client, uint32_t channel) const;
  bool Has(uint32_t client) const { return clients_.count(client) != 0; }
  void Bind(uint32_t client, uint32_t channel);

  // After so many more calls of this control the next `times` come back with this status and do nothing.
  void Refuse(Command command, uint32_t status, int times = 1 << 30, int after = 0) {
    refusals_[command] = {status, times, after};
  }
  // The GPU falls off the bus.
  void Lose() { lost_ = true; }
  // ioctl itself fails so.
  void FailIoctl(int error) { error_ = error; }

  int calls(Command command) const { return calls_.count(command) ? calls_.at(command) : 0; }

 private:
  friend class File;
  struct Object {
    uint32_t parent, kind;
    uint32_t saves = 0;                        // of groups, in the middle of a kernel
    bool bound = false, enabled = true;        // of channels
    bool scheduled = true, preempted = false;  // of groups
  };
  struct Client {
    const File* owner;
    std::map<uint32_t, Object> objects;
  };
  struct Refusal {
    uint32_t status;
    int times, after;
  };

  int Ioctl(const File& file, unsigned long request, void* argument);
  void Closed(const File& file);
  uint32_t Alloc(const File& file, uint32_t root, uint32_t parent, uint32_t kind, uint32_t* handle);
  uint32_t Free(const File& file, uint32_t root, uint32_t handle);
  uint32_t Control(const File& file, const vgpud::rm::RmControl& control);
  uint32_t Disable(Client& client, void* params);
  uint32_t Count(Client& client, void* params);
  uint32_t Schedule(Client& client, uint32_t group, bool on);
  uint32_t Preempt(Object& group, const void* params);

  const Settings settings_;
  std::map<uint32_t, Client> clients_;
  std::map<Command, Refusal> refusals_;
  std::map<Command, int> calls_;
  std::map<uint32_t, uint64_t> timeslices_;
  uint32_t next_ = 0xc1d00000;
  bool lost_ = false;
  int error_ = 0;
};

}  // namespace rm_model
