// SPDX-License-Identifier: Apache-2.0
#include "scim/import_journal.hpp"

#include <tidegate/json/parse.hpp>
#include <tidegate/json/string.hpp>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tidegate::app {

namespace {

using namespace std::chrono_literals;

constexpr auto between_syncs = 1s;

[[nodiscard]] auto name_of(scim_format format) -> std::string {
  return format == scim_format::csv ? "csv" : "jsonl";
}

/// Whether two names are of one file, which need not exist.
[[nodiscard]] auto is_same_file(std::string const& a, std::string const& b) -> bool {
  std::error_code fault;
  if (std::filesystem::equivalent(a, b, fault)) {
    return true;
  }
  auto const whole = [&](std::string const& name) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(name), fault);
  };
  fault.clear();
  return whole(a) == whole(b) && !fault;
}

[[nodiscard]] auto text_member(json::value const& from, std::string_view name) -> std::string {
  auto const* const found = from.find<std::string>(name);
  return found == nullptr ? std::string() : *found;
}

[[nodiscard]] auto size_member(json::value const& from, std::string_view name) -> std::size_t {
  auto const* const found = from.find<std::int64_t>(name);
  return found == nullptr || *found < 0 ? 0 : static_cast<std::size_t>(*found);
}

/// A line of the file of rejects.
[[nodiscard]] auto to_json_line(rejected_line const& rejected, std::string const& error)
    -> std::string {
  json::object out;
  out.append("line", static_cast<std::int64_t>(rejected.line));
  if (rejected.error.status != 0) {
    out.append("status", rejected.error.status);
  }
  if (auto const type = to_string(rejected.error.type); !type.empty()) {
    out.append("scimType", type);
  }
  out.append("error", error);
  if (rejected.resource.is_null()) {
    // Octets that are not UTF-8 are replaced, so that the line can be read.
    std::string quoted;
    json::append_string(quoted, rejected.text);
    out.append("text", *json::parse(quoted, {.octets_max = quoted.size()}));
  } else {
    out.append("resource", rejected.resource);
  }
  return to_string(json::value(std::move(out))) + "\n";
}

}  // namespace

auto message_of(client::scim_error const& error) -> std::string {
  return error.status == 0 ? error.detail : to_string(error);
}

auto import_journal::rejects_name() const -> std::string {
  return !settings_.rejects.empty() ? settings_.rejects
         : has_file()               ? settings_.file + ".rejects"
                                    : "";
}

auto import_journal::exists() const -> bool {
  return std::filesystem::exists(name());
}

auto import_journal::invalid() const -> std::unexpected<error_text> {
  return failure("invalid journal " + name() + " (expected one of 'tidegate scim import')");
}

auto import_journal::check_rejects() const -> result<void, error_text> {
  auto const rejects = rejects_name();
  if (rejects.empty()) {
    return {};
  }
  if (has_file() && (is_same_file(rejects, settings_.file) || is_same_file(rejects, name()))) {
    return failure("cannot write rejects to " + rejects + ": the import reads it");
  }
  std::error_code none;
  if (auto const size = std::filesystem::file_size(rejects, none);
      !none && size > 0 && !settings_.resume) {
    return failure(rejects +
                   " exists and would be overwritten: remove it, or name another by --rejects");
  }
  return {};
}

auto import_journal::open(import_identity fresh) -> result<import_identity, error_text> {
  bool const is_there = exists();
  if (is_there && !settings_.resume) {
    return failure(name() +
                   " exists, of an import that is not complete: use --resume to continue it, or "
                   "remove the file to start again");
  }
  if (!is_there && settings_.resume) {
    return failure("nothing to resume: " + name() + " does not exist");
  }
  TIDEGATE_TRY(journal_, durable_file::open(name()));
  TIDEGATE_TRY(auto const size, journal_->size());
  line_reader lines(*journal_, size);
  TIDEGATE_TRY(auto const first, lines.next());
  if (!first) {  // a new one, or one that ended before it began
    TIDEGATE_TRY_VOID(journal_->truncate(0));
    TIDEGATE_TRY_VOID(journal_->write(heading(fresh)));
    TIDEGATE_TRY_VOID(journal_->sync());
    return fresh;
  }
  TIDEGATE_TRY(auto identity, parse_heading(*first, fresh.digest));
  auto octets = first->size() + 1;
  for (;;) {
    TIDEGATE_TRY(auto const line, lines.next());
    if (!line) {
      TIDEGATE_TRY_VOID(journal_->truncate(octets));
      return identity;
    }
    octets += line->size() + 1;
    if (!take_entry(*line)) {
      return invalid();
    }
  }
}

auto import_journal::open_rejects() -> result<void, error_text> {
  if (auto const name = rejects_name(); !name.empty()) {
    TIDEGATE_TRY(rejects_, durable_file::open(name));
    TIDEGATE_TRY_VOID(rejects_->truncate(rejects_octets_));
  }
  return {};
}

auto import_journal::heading(import_identity const& identity) const -> std::string {
  json::object out;
  out.append("url", settings_.url);
  out.append("format", name_of(settings_.format));
  out.append("digest", identity.digest);
  out.append("seed", identity.seed);
  out.append("began", static_cast<std::int64_t>(identity.began.time_since_epoch().count()));
  if (identity.bulk.operations > 0) {
    out.append("bulkOperations", static_cast<std::int64_t>(identity.bulk.operations));
    out.append("bulkOctets", static_cast<std::int64_t>(identity.bulk.octets));
  }
  return to_string(json::value(std::move(out))) + "\n";
}

auto import_journal::parse_heading(std::string_view line, std::string const& digest) const
    -> result<import_identity, error_text> {
  auto const read = json::parse(line);
  auto const* const began = read ? read->find("began") : nullptr;
  if (began == nullptr || began->if_integer() == nullptr || text_member(*read, "seed").empty()) {
    return invalid();
  }
  if (auto const url = text_member(*read, "url"); url != settings_.url) {
    return failure(name() + " is of an import to " + url);
  }
  if (auto const format = text_member(*read, "format");
      !format.empty() && format != name_of(settings_.format)) {
    return failure(name() + " is of an import with --format " + format);
  }
  if (text_member(*read, "digest") != digest) {
    return failure(settings_.file + " has changed since its import began");
  }
  return import_identity{
      .digest = digest,
      .seed = text_member(*read, "seed"),
      .began = idempotency::wall_time(std::chrono::milliseconds(*began->if_integer())),
      .bulk = {size_member(*read, "bulkOperations"), size_member(*read, "bulkOctets")}};
}

auto import_journal::take_entry(std::string_view text) -> bool {
  std::uint64_t line = 0;
  auto const* const end = text.data() + text.size();
  auto const number = std::from_chars(text.data(), end, line);
  if (number.ec != std::errc{} || end - number.ptr < 4 || number.ptr[0] != ' ' ||
      !std::string_view("cusxr").contains(number.ptr[1]) || number.ptr[2] != ' ') {
    return false;
  }
  std::uint64_t octets = 0;
  if (auto const size = std::from_chars(number.ptr + 3, end, octets);
      size.ec != std::errc{} || size.ptr != end) {
    return false;
  }
  rejects_octets_ = octets;
  settled_before_.insert(line);
  counts_.add(static_cast<settled>(number.ptr[1]));
  return true;
}

auto import_journal::settle(std::uint64_t line, settled as) -> result<void, error_text> {
  counts_.add(as);
  if (!journal_) {
    return {};
  }
  return journal_->write(std::to_string(line) + " " + static_cast<char>(as) + " " +
                         std::to_string(rejects_octets_) + "\n");
}

auto import_journal::reject(rejected_line const& rejected, settled as) -> result<void, error_text> {
  if (rejects_) {
    auto const line = to_json_line(rejected, message_of(rejected.error));
    TIDEGATE_TRY_VOID(rejects_->write(line));
    rejects_octets_ += line.size();
  }
  return settle(rejected.line, as);
}

auto import_journal::sync() -> result<void, error_text> {
  synced_ = clock::now();
  if (rejects_) {
    TIDEGATE_TRY_VOID(rejects_->sync());
  }
  return journal_ ? journal_->sync() : result<void, error_text>();
}

auto import_journal::sync_sometimes() -> result<void, error_text> {
  return clock::now() - synced_ > between_syncs ? sync() : result<void, error_text>();
}

void import_journal::remove() {
  std::remove(name().c_str());
}

auto import_journal::close_rejects() -> std::string {
  if (rejects_ && rejects_octets_ == 0) {
    std::remove(rejects_->name().c_str());
    return {};
  }
  return rejects_ ? rejects_->name() : "";
}

}  // namespace tidegate::app
