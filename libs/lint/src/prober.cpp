// SPDX-License-Identifier: Apache-2.0
#include <tidegate/lint/prober.hpp>

#include "recording.hpp"

#include <tidegate/http/query.hpp>
#include <tidegate/json/parse.hpp>

#include <algorithm>
#include <utility>

namespace tidegate::TIDEGATE_ABI::lint {

/// In the order in which they are made. The samples come last: they may be so many that quotas end.
enum class prober::step : std::uint8_t {
  first_sample,
  missing_page,
  key_missing,
  key_first,
  key_retry,
  key_reused,
  key_malformed,
  key_concurrent,
  scim_config,
  scim_first_page,
  scim_next_page,
  scim_previous_page,
  scim_invalid_cursor,
  scim_count_zero,
  scim_count_negative,
  scim_count_word,
  scim_default_page,
  samples,
  done,
};

namespace {

constexpr std::string_view key_name = "Idempotency-Key";
/// A cursor that no server gave, in characters that a cursor may have.
constexpr std::string_view foreign_cursor = "tidegate-lint-no-cursor";

/// The path of a URL with what is before it, and the query with its "?".
[[nodiscard]] auto split_query(std::string_view url)
    -> std::pair<std::string_view, std::string_view> {
  url = url.substr(0, url.find('#'));
  auto const query = std::min(url.find('?'), url.size());
  return {url.substr(0, query), url.substr(query)};
}

[[nodiscard]] auto with_parameters(std::string_view url, std::string_view parameters)
    -> std::string {
  auto const [path, query] = split_query(url);
  std::string out(path);
  out.append(query);
  if (!parameters.empty()) {
    out.append(query.size() > 1 ? "&" : query.empty() ? "?" : "").append(parameters);
  }
  return out;
}

[[nodiscard]] auto without_slash(std::string_view path) -> std::string_view {
  return path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
}

}  // namespace

prober::prober(probe_settings settings) : settings_(std::move(settings)) {
  is_scim_ = settings_.scim == scim_choice::always;
  // An endpoint is named in the plural with a capital letter, as /Users; else this is the base of
  // them.
  auto const [path, query] = split_query(settings_.url);
  auto const base = without_slash(path);
  auto const slash = base.rfind('/');
  auto const last = base.substr(slash + 1);
  bool const has_path = slash != std::string_view::npos && slash >= 1 && base[slash - 1] != '/';
  if (has_path && !last.empty() && last.front() >= 'A' && last.front() <= 'Z') {
    scim_endpoint_ = settings_.url;
    scim_base_ = base.substr(0, slash);
  } else {
    scim_endpoint_ = std::string(base) + "/Users" + std::string(query);
    scim_base_ = base;
  }
}

auto prober::find(probe purpose) const noexcept -> exchange const* {
  auto const found = std::ranges::find(exchanges_, purpose,
                                       [](exchange const& each) { return each.request.purpose; });
  return found == exchanges_.end() ? nullptr : &*found;
}

void prober::record(exchange what) {
  exchanges_.push_back(std::move(what));
  if (exchanges_.size() == 1 && settings_.scim == scim_choice::when_seen) {
    look_for_scim();
  }
}

void prober::look_for_scim() {
  recording const what(exchanges_);
  auto const& first = what.all().front();
  is_scim_ = first.media_type() == "application/scim+json";
  if (!first.json || is_scim_) {
    return;
  }
  if (auto const* const schemas = first.json->find<json::array>("schemas")) {
    is_scim_ = std::ranges::any_of(*schemas, [](json::value const& one) {
      return one.if_string() != nullptr && one.if_string()->starts_with("urn:ietf:params:scim:");
    });
  }
}

auto prober::get(probe purpose, std::string url) const -> planned_request {
  return {.purpose = purpose, .method = "GET", .url = std::move(url), .fields = settings_.fields};
}

auto prober::write(probe purpose, std::string const& content,
                   std::optional<std::string> const& key) const -> planned_request {
  planned_request made{.purpose = purpose,
                       .method = settings_.write_method,
                       .url = settings_.url,
                       .fields = settings_.fields,
                       .content = content};
  if (key) {
    made.fields.push_back({std::string(key_name), *key});
  }
  return made;
}

auto prober::list(probe purpose, std::string_view parameters) const -> planned_request {
  auto made = get(purpose, with_parameters(scim_endpoint_, parameters));
  made.fields.push_back({"Accept", "application/scim+json"});
  return made;
}

auto prober::follow(probe purpose, probe page, std::string_view cursor) const
    -> std::vector<planned_request> {
  auto const* const before = find(page);
  if (before == nullptr || before->status != 200) {
    return {};
  }
  recording const what({before, 1});
  auto const& read = what.all().front();
  auto const text = read.json ? text_of(*read.json, cursor) : std::string_view();
  if (text.empty()) {
    return {};
  }
  std::string query = "cursor=";
  http::append_query_encoded(query, text);
  return {list(purpose, query + "&count=2")};
}

auto prober::make(step which) -> std::vector<planned_request> {
  auto const quoted_key = [this] { return "\"" + key_ + "\""; };
  switch (which) {
    case step::first_sample: ++samples_sent_; return {get(probe::sample, settings_.url)};
    case step::missing_page: {
      auto const [path, query] = split_query(settings_.url);
      return {get(probe::missing_page,
                  std::string(without_slash(path)) + "/tidegate-lint-no-such-page")};
    }
    case step::key_missing:
      if (!settings_.is_key_required) {
        return {};
      }
      return {write(probe::key_missing, settings_.content, std::nullopt)};
    case step::key_first:
      key_ = settings_.make_key();
      return {write(probe::key_first, settings_.content, quoted_key())};
    case step::key_retry: return {write(probe::key_retry, settings_.content, quoted_key())};
    case step::key_reused:
      return {write(
          probe::key_reused,
          settings_.other_content.empty() ? altered(settings_.content) : settings_.other_content,
          quoted_key())};
    case step::key_malformed:
      return {write(probe::key_malformed, settings_.content, "\"" + settings_.make_key())};
    case step::key_concurrent: {
      key_ = settings_.make_key();
      auto const one = write(probe::key_concurrent, settings_.content, quoted_key());
      return {one, one};
    }
    case step::scim_config: {
      auto made = get(probe::scim_config, scim_base_ + "/ServiceProviderConfig");
      made.fields.push_back({"Accept", "application/scim+json"});
      return {std::move(made)};
    }
    case step::scim_first_page: return {list(probe::scim_first_page, "cursor=&count=2")};
    case step::scim_next_page:
      return follow(probe::scim_next_page, probe::scim_first_page, "nextCursor");
    case step::scim_previous_page:
      return follow(probe::scim_previous_page, probe::scim_next_page, "previousCursor");
    case step::scim_invalid_cursor:
      return {
          list(probe::scim_invalid_cursor, "cursor=" + std::string(foreign_cursor) + "&count=2")};
    case step::scim_count_zero: return {list(probe::scim_count_zero, "count=0")};
    case step::scim_count_negative: return {list(probe::scim_count_negative, "count=-1")};
    case step::scim_count_word: return {list(probe::scim_count_word, "count=some")};
    case step::scim_default_page: return {list(probe::scim_default_page, "")};
    case step::samples:
      if (samples_sent_ >= settings_.samples || exchanges_.back().status == 429 ||
          exchanges_.back().status == 0) {
        return {};
      }
      ++samples_sent_;
      --next_;  // the same step again
      return {get(probe::sample, settings_.url)};
    case step::done: break;
  }
  return {};
}

auto prober::next() -> std::vector<planned_request> {
  // Without an answer to the first request there is nothing to look at.
  if (!exchanges_.empty() && exchanges_.front().status == 0) {
    return {};
  }
  while (next_ < static_cast<std::uint8_t>(step::done)) {
    auto const which = static_cast<step>(next_++);
    bool const is_write = which >= step::key_missing && which <= step::key_concurrent;
    bool const is_scim = which >= step::scim_config && which <= step::scim_default_page;
    if ((is_write && settings_.write_method.empty()) || (is_scim && !is_scim_)) {
      continue;
    }
    if (auto made = make(which); !made.empty()) {
      return made;
    }
  }
  return {};
}

auto altered(std::string_view content) -> std::string {
  auto read = json::parse(content);
  auto* const object = read ? read->if_object() : nullptr;
  if (object == nullptr) {
    return std::string(content) + "x";
  }
  for (auto& member : object->members()) {
    if (auto const* const text = member.value.if_string()) {
      member.value = json::value(*text + "-2");
    } else if (auto const* const number = member.value.if_integer()) {
      member.value = json::value(*number == 1 ? std::int64_t{2} : std::int64_t{1});
    } else if (auto const* const is_true = member.value.if_bool()) {
      member.value = json::value(!*is_true);
    } else {
      continue;
    }
    return to_string(*read);
  }
  object->set("tidegate-lint", json::value(true));
  return to_string(*read);
}

}  // namespace tidegate::TIDEGATE_ABI::lint
