// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/claim_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/log.h"
#include "integrations/kubernetes/ask.h"
#include "integrations/kubernetes/profiles.h"
#include "vgpud/containers/cdi.h"
#include "vgpud/model/api.h"

namespace vgpud::kubernetes {
namespace {

std::string CdiName(const PreparedClaim& claim, const std::string& request) {
  return fmt::format("{}-{}", claim.id.uid, request);
}

}  // namespace

ClaimDriver::ClaimDriver(Options options, ApiServer server, std::unique_ptr<PreparedClaims> claims)
    : options_(std::move(options)),
      server_(std::move(server)),
      vgpud_(control::ControlSocketPath(options_.runtime_dir)),
      vfs_(options_.runtime_dir),
      claims_(std::move(claims)) {}

Result<std::unique_ptr<ClaimDriver>> ClaimDriver::Open(Options options, ApiServer server) {
  auto claims = TRY(PreparedClaims::Open(options.claims_dir));
  return std::unique_ptr<ClaimDriver>(new ClaimDriver(std::move(options), std::move(server), std::move(claims)));
}

Offer ClaimDriver::Reconcile(const Config& config, Vfs* vfs) {
  const std::lock_guard lock(mutex_);
  config_ = config;
  if (!cdi_written_)  // after a start of the host the file is gone, and claims are not
    if (const auto done = WriteCdi(); !done) LOG(kError, "claims can't get VFs: {}", done.error().context);
  return vfs->Reconcile(config, claims_->held());
}

const Resource* ClaimDriver::ResourceOf(const std::string& vf) const {
  for (const Resource& resource : config_.resources)
    for (int number = 0; resource.dra && number < resource.count; ++number)
      if (resource.VfName(number) == vf) return &resource;
  return nullptr;
}

Result<PreparedClaim> ClaimDriver::Plan(const ClaimId& id, const std::vector<AllocatedVf>& vfs,
                                        const std::string& profiles) const {
  PreparedClaim claim{.id = id, .vfs = {}, .made = false};
  for (const AllocatedVf& vf : vfs) {
    const Resource* const resource = ResourceOf(vf.device);
    if (resource == nullptr)
      return Fail(std::errc::no_such_device, fmt::format("{} offers no {} any more", options_.node, vf.device));
    if (const PreparedClaim* const holder = claims_->HolderOf(vf.device))
      return Fail(std::errc::device_or_resource_busy,
                  fmt::format("{} belongs to the claim {} still", vf.device, holder->id.text()));
    const auto most_vram = VramOfProfile(profiles, resource->profile);
    if (!most_vram)
      return Fail(std::errc::no_such_device,
                  fmt::format("vgpud on {} has no profile {} with memory", options_.node, resource->profile));
    VfSettings settings = TRY(SettingsFor(vf, *resource, *most_vram));
    if (!settings.weight) settings.weight = resource->weight;
    claim.vfs.push_back({.request = vf.request,
                         .name = vf.device,
                         .held = {.profile = resource->profile, .settings = settings},
                         .channel_socket = {}});
  }
  return claim;
}

Result<void> ClaimDriver::MakeVf(PreparedVf* vf) {
  const Resource* const resource = ResourceOf(vf->name);
  TRY(vfs_.Make(vf->name, vf->held.profile, vf->held.settings, resource != nullptr ? resource->tenant : ""));
  const OfferedVf made = TRY(vfs_.Find(vf->name));
  if (!made.problem.empty()) return Fail(std::errc::io_error, fmt::format("{}: {}", vf->name, made.problem));
  if (resource != nullptr) TRY(GiveSockets(made, resource->user));
  vf->channel_socket = made.channel_socket;
  return {};
}

Result<void> ClaimDriver::Make(PreparedClaim claim) {
  TRY(claims_->Put(claim));
  Result<void> done;
  for (PreparedVf& vf : claim.vfs) {
    done = vfs_.End(vf.name);
    if (done) done = MakeVf(&vf);
    if (!done) break;
  }
  claim.made = true;
  if (done) done = claims_->Put(claim);
  if (done) return {};
  // The next one who gets them has them anew.
  if (const auto removed = claims_->Remove(claim.id.uid); !removed)
    LOG(kError, "claim {}: {}", claim.id.text(), removed.error().context);
  return done;
}

// A claim that is known: what of its VFs is lost is made again.
Result<std::vector<ClaimDriver::Given>> ClaimDriver::Deliver(const ClaimId& id) {
  const PreparedClaim* known = claims_->Find(id.uid);
  if (known->id != id)
    return Fail(std::errc::invalid_argument, fmt::format("the claim of that UID is {}", known->id.text()));
  if (!known->made) {
    TRY(Make(*known));
  } else {
    PreparedClaim claim = *known;
    for (PreparedVf& vf : claim.vfs)
      if (!TRY(vfs_.IsThere(vf.name))) TRY(MakeVf(&vf));
    if (claim != *known) TRY(claims_->Put(claim));
  }
  TRY(WriteCdi());
  known = claims_->Find(id.uid);
  std::vector<Given> given;
  std::map<std::string, int> of_request;
  for (const PreparedVf& vf : known->vfs) {
    given.push_back({.request = vf.request, .device = vf.name, .cdi = {}});
    if (of_request[vf.request]++ == 0)
      given.back().cdi.push_back(fmt::format("{}={}", kClaimCdiKind, CdiName(*known, vf.request)));
  }
  return given;
}

Result<std::vector<ClaimDriver::Given>> ClaimDriver::Prepare(const ClaimId& id) {
  TRY(CheckClaimId(id));
  {
    const std::lock_guard lock(mutex_);
    if (claims_->Find(id.uid) != nullptr) return Deliver(id);
  }
  const std::string claim =
      TRY(server_.Get(fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}", id.ns, id.name)));
  const std::vector<AllocatedVf> vfs = TRY(ParseClaim(claim, id, options_.node));
  const std::string profiles = TRY(AskVgpud(vgpud_, "GET", "/v1/profiles", ""));
  const std::lock_guard lock(mutex_);
  if (claims_->Find(id.uid) == nullptr) {
    TRY(Make(TRY(Plan(id, vfs, profiles))));
    LOG(kInfo, "claim {} has {} VFs: {}{}", id.text(), vfs.size(), vfs.front().device, vfs.size() > 1 ? ", ..." : "");
  }
  return Deliver(id);
}

Result<void> ClaimDriver::Unprepare(const ClaimId& id) {
  const std::lock_guard lock(mutex_);
  const PreparedClaim* const known = claims_->Find(id.uid);
  if (known == nullptr) return {};
  if (known->id != id)
    return Fail(std::errc::invalid_argument, fmt::format("the claim of that UID is {}", known->id.text()));
  for (const PreparedVf& vf : known->vfs) TRY(vfs_.End(vf.name));
  TRY(claims_->Remove(id.uid));
  LOG(kInfo, "claim {} has no VFs any more", id.text());
  return WriteCdi();
}

Result<void> ClaimDriver::WriteCdi() {
  std::vector<daemon::CdiDevice> devices;
  for (const auto& [uid, claim] : claims_->all()) {
    if (!claim.made) continue;
    for (const PreparedVf& vf : claim.vfs) {
      const std::string name = CdiName(claim, vf.request);
      auto device = std::find_if(devices.begin(), devices.end(),
                                 [&](const daemon::CdiDevice& each) { return each.name == name; });
      if (device == devices.end()) device = devices.insert(devices.end(), {.name = name, .vfs = {}});
      device->vfs.push_back({vf.name, vf.channel_socket});
    }
  }
  TRY(daemon::WriteCdi(options_.cdi_file, daemon::CdiTextOf(kClaimCdiKind, devices, options_.library)));
  cdi_written_ = true;
  return {};
}

}  // namespace vgpud::kubernetes
