// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/rm/machine.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/log.h"

namespace vgpud::kernel_side {

Machine::Machine(const Chip& chip, uint32_t cards, std::string version, Store& store, FuseMount& mount)
    : version_(std::move(version)), store_(store), mount_(mount) {
  for (uint32_t i = 0; i < cards; ++i) cards_.push_back({&chip, i});
}

int Machine::major() const { return std::atoi(version_.c_str()); }

Card* Machine::FindCard(uint32_t gpu_id) {
  const auto it = std::find_if(cards_.begin(), cards_.end(), [&](const Card& card) { return card.gpu_id() == gpu_id; });
  return it == cards_.end() ? nullptr : &*it;
}

Card* Machine::FindCard(const std::array<uint8_t, 16>& uuid) {
  for (Card& card : cards_)
    if (const auto own = card.uuid(); std::equal(own.begin(), own.end(), uuid.begin())) return &card;
  return nullptr;
}

std::shared_ptr<StoredMemory> Machine::MakeMemory(uint64_t bytes) { return StoredMemory::Make(store_, mount_, bytes); }

Client* Machine::FindClient(uint32_t handle) {
  const auto it = clients_.find(handle);
  return it == clients_.end() ? nullptr : it->second.get();
}

Client& Machine::AddClient(uint32_t handle, uint64_t file) {
  auto& client = clients_[handle];
  client = std::make_unique<Client>(handle, file);
  return *client;
}

void Machine::RemoveClient(uint32_t handle) { clients_.erase(handle); }

void Machine::RemoveClientsOf(uint64_t file) {
  std::erase_if(clients_, [&](const auto& entry) { return entry.second->file() == file; });
}

bool Machine::RunChannels() {
  bool did = false;
  for (const auto& [handle, client] : clients_)
    client->Each<ChannelObject>([&](ChannelObject& object) {
      if (!object.card->lost) did = object.channel->Run() || did;
    });
  return did;
}

bool Machine::has_channels() {
  bool has = false;
  for (const auto& [handle, client] : clients_) client->Each<ChannelObject>([&](ChannelObject&) { has = true; });
  return has;
}

void Machine::Interrupt(bool of_work) {
  for (const auto& [handle, client] : clients_)
    client->Each<EventObject>([&](EventObject& event) {
      if (event.file != 0 && event.of_work == of_work) mount_.Wake(event.file);
    });
}

void Machine::Lose(Card& card) {
  card.lost = true;
  Fail(card, Xid::kOffTheBus);
}

void Machine::Fail(Card& card, Xid why) {
  for (const auto& [handle, client] : clients_)
    client->Each<ChannelObject>([&](ChannelObject& object) {
      if (object.card == &card) object.channel->Fail(why);
    });
}

RmStatus Machine::AnswerUnknown(uint32_t command) {
  unknown_.insert(command);
  return learns_ ? RmStatus::kOk : RmStatus::kNotSupported;
}

std::optional<RmStatus> Machine::RefusalOf(uint32_t command) const {
  const auto it = refused_.find(command);
  return it == refused_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace vgpud::kernel_side
