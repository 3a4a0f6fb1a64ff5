// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/context_storage.h"

#include <gtest/gtest.h>

#include <vector>

#include "guest-driver-shim/libcuda/channel/handle_table.h"

namespace vgpud::cuda {
namespace {

void* Pointer(uintptr_t number) { return reinterpret_cast<void*>(number); }

// (key, value) of what was destroyed.
std::vector<std::pair<void*, void*>> destroyed;
void Note(void* context, void* key, void* value) {
  EXPECT_EQ(Pointer(77), context);
  destroyed.emplace_back(key, value);
}

TEST(ContextStorage, KeepsOneValuePerKey) {
  ContextStorage storage;
  void* value = nullptr;
  EXPECT_FALSE(storage.Find(Pointer(1), &value));
  EXPECT_TRUE(storage.Put(Pointer(1), Pointer(10), nullptr));
  EXPECT_TRUE(storage.Put(Pointer(2), Pointer(20), nullptr));
  EXPECT_TRUE(storage.Put(Pointer(1), Pointer(11), nullptr));
  EXPECT_TRUE(storage.Find(Pointer(1), &value));
  EXPECT_EQ(Pointer(11), value);
  EXPECT_TRUE(storage.Find(Pointer(2), &value));
  EXPECT_EQ(Pointer(20), value);
  EXPECT_TRUE(storage.Delete(Pointer(1)));
  EXPECT_FALSE(storage.Find(Pointer(1), &value));
  EXPECT_FALSE(storage.Delete(Pointer(1)));
  EXPECT_TRUE(storage.Find(Pointer(2), &value)) << "the other one stays";
  EXPECT_FALSE(storage.Put(nullptr, Pointer(1), nullptr));
  EXPECT_FALSE(storage.Delete(nullptr)) << "a place that is free has no key";
}

TEST(ContextStorage, Holds256KeysAndUsesPlacesAgain) {
  ContextStorage storage;
  for (uintptr_t key = 1; key <= 256; ++key) EXPECT_TRUE(storage.Put(Pointer(key), Pointer(key), nullptr)) << key;
  EXPECT_FALSE(storage.Put(Pointer(257), Pointer(1), nullptr));
  EXPECT_TRUE(storage.Put(Pointer(256), Pointer(5), nullptr)) << "known";
  for (const uintptr_t key : {1, 100, 256}) {
    EXPECT_TRUE(storage.Delete(Pointer(key)));
    EXPECT_TRUE(storage.Put(Pointer(1000 + key), Pointer(6), nullptr));
    EXPECT_FALSE(storage.Put(Pointer(2000), Pointer(1), nullptr));
    void* value = nullptr;
    EXPECT_TRUE(storage.Find(Pointer(1000 + key), &value));
    EXPECT_EQ(Pointer(6), value);
  }
}

TEST(ContextStorage, DestroysWhatIsLeft) {
  destroyed.clear();
  ContextStorage storage;
  for (uintptr_t key = 1; key <= 256; ++key)
    ASSERT_TRUE(storage.Put(Pointer(key), Pointer(key * 2), key % 2 == 0 ? Note : nullptr));
  storage.Delete(Pointer(2));
  storage.Clear(Pointer(77));
  EXPECT_EQ(127u, destroyed.size());
  EXPECT_EQ(std::pair(Pointer(4), Pointer(8)), destroyed.front());
  EXPECT_EQ(std::pair(Pointer(256), Pointer(512)), destroyed.back());
  void* value = nullptr;
  EXPECT_FALSE(storage.Find(Pointer(3), &value));
  storage.Clear(Pointer(77));
  EXPECT_EQ(127u, destroyed.size()) << "once";
}

struct Thing;
using Table = HandleTable<Thing*, int>;

TEST(HandleTable, HandlesOfTwoTablesNeverMeet) {
  Table first(1), second(2);
  std::vector<Thing*> handles;
  for (int i = 0; i < 3; ++i) {
    handles.push_back(first.Add(std::make_shared<int>(i)));
    EXPECT_EQ(nullptr, second.Find(handles.back()));
    EXPECT_NE(handles.back(), second.Add(std::make_shared<int>(i)));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(i, *first.Find(handles[static_cast<size_t>(i)]));
  EXPECT_EQ((uint64_t{1} << 32) + 0x100, reinterpret_cast<uint64_t>(handles[0])) << "no small number, no address";
  EXPECT_EQ(0x10u, reinterpret_cast<uint64_t>(handles[1]) - reinterpret_cast<uint64_t>(handles[0]));
}

TEST(HandleTable, TakesOutOneOrAllThatAreMeant) {
  Table table(1);
  std::vector<Thing*> handles;
  for (int i = 0; i < 6; ++i) handles.push_back(table.Add(std::make_shared<int>(i)));
  EXPECT_EQ(3, *table.Remove(handles[3]));
  EXPECT_EQ(nullptr, table.Remove(handles[3]));
  EXPECT_EQ(nullptr, table.Find(handles[3]));
  EXPECT_EQ(2u, table.RemoveIf([](int value) { return value % 2 == 1; }).size());
  int sum = 0;
  table.ForEach([&](const std::shared_ptr<int>& value) { sum += *value; });
  EXPECT_EQ(0 + 2 + 4, sum);
}

}  // namespace
}  // namespace vgpud::cuda
