// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/fingerprint.hpp>

#include <tidegate/json/canonical.hpp>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstring>

namespace tidegate::TIDEGATE_ABI::idempotency {

namespace {

/// What a digest is of, as its first octet: no two kinds can have one digest.
enum class digest_kind : char {
  method = 'M',
  path = 'P',
  query = 'Q',
  exact_content = 'B',
  canonical_content = 'J',
  chosen_content = 'C',
};

// One code serves for all parts, since it starts over at the end of each: it is large to copy.

void begin(hmac_sha256& code, digest_kind kind) noexcept {
  char const first = static_cast<char>(kind);
  code.update(std::string_view(&first, 1));
}

[[nodiscard]] auto end(hmac_sha256& code) noexcept -> part_digest {
  auto const whole = code.finish();
  part_digest half{};
  std::copy_n(whole.begin(), half.size(), half.begin());
  return half;
}

[[nodiscard]] auto digest(hmac_sha256& code, digest_kind kind, std::string_view text) noexcept
    -> part_digest {
  begin(code, kind);
  code.update(text);
  return end(code);
}

}  // namespace

auto name_of(request_part part) noexcept -> std::string_view {
  switch (part) {
    case request_part::method: return "method";
    case request_part::path: return "path";
    case request_part::query: return "query";
    case request_part::body: break;
  }
  return "body";
}

auto fingerprint_rule::none() -> fingerprint_rule {
  fingerprint_rule rule;
  rule.kind_ = kind::none;
  rule.text_ = "n";
  return rule;
}

auto fingerprint_rule::json() -> fingerprint_rule {
  fingerprint_rule rule;
  rule.kind_ = kind::json;
  rule.text_ = "j";
  return rule;
}

auto fingerprint_rule::json(std::vector<json::pointer> pointers)
    -> std::optional<fingerprint_rule> {
  if (pointers.empty() || pointers.size() > pointers_max) {
    return std::nullopt;
  }
  fingerprint_rule rule;
  rule.kind_ = kind::pointers;
  rule.text_ = "p";
  for (auto const& pointer : pointers) {  // each as SIZE:TEXT, so that any text can be read back
    rule.text_ += std::to_string(pointer.text().size());
    rule.text_ += ':';
    rule.text_ += pointer.text();
  }
  rule.pointers_ = std::move(pointers);
  return rule;
}

auto fingerprint_rule::parse(std::string_view text) -> std::optional<fingerprint_rule> {
  if (text == "n") {
    return none();
  }
  if (text == "b") {
    return body();
  }
  if (text == "j") {
    return json();
  }
  if (!text.starts_with('p') || text.size() > text_octets_max) {
    return std::nullopt;
  }
  std::vector<json::pointer> pointers;
  for (auto rest = text.substr(1); !rest.empty();) {
    std::size_t size = 0;
    auto const read = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    auto const digits = static_cast<std::size_t>(read.ptr - rest.data());
    if (read.ec != std::errc() || digits == rest.size() || rest[digits] != ':' ||
        rest.size() - digits - 1 < size) {
      return std::nullopt;
    }
    auto pointer = json::pointer::parse(rest.substr(digits + 1, size));
    if (!pointer) {
      return std::nullopt;
    }
    pointers.push_back(*std::move(pointer));
    rest.remove_prefix(digits + 1 + size);
  }
  auto rule = json(std::move(pointers));
  // Sizes with zeros before them would be a second spelling of the same rule.
  return rule && rule->text() == text ? rule : std::nullopt;
}

auto differing_parts(fingerprint const& a, fingerprint const& b) noexcept -> request_parts {
  assert(a.rule == b.rule);
  request_parts differing;
  for (auto part : all_request_parts) {
    auto const i = static_cast<std::size_t>(part);
    // As memory: octet by octet takes ten times as long.
    if (std::memcmp(a.parts[i].data(), b.parts[i].data(), sizeof(part_digest)) != 0) {
      differing.insert(part);
    }
  }
  return differing;
}

fingerprinter::fingerprinter(secret const& secret, fingerprint_rule const& rule,
                             std::string_view method, std::string_view path, std::string_view query,
                             part_memo* memo)
    : rule_(&rule), code_(secret.fingerprints()), content_(secret.fingerprints()) {
  begin(content_, digest_kind::exact_content);
  made_.rule = rule.text();
  auto const set = [&](request_part part, digest_kind kind, std::string_view text) {
    auto const i = static_cast<std::size_t>(part);
    if (memo == nullptr) {
      made_.parts[i] = digest(code_, kind, text);
      return;
    }
    auto& known = memo->parts[i];
    if (!known.made || known.text != text) {
      known.digest = digest(code_, kind, text);
      known.text = text;
      known.made = true;
    }
    made_.parts[i] = known.digest;
  };
  set(request_part::method, digest_kind::method, method);
  set(request_part::path, digest_kind::path, path);
  set(request_part::query, digest_kind::query, query);
}

void fingerprinter::update(std::string_view piece) noexcept {
  assert(rule_->streams());
  if (rule_->kind_ == fingerprint_rule::kind::body) {
    content_.update(piece);
  }
}

auto fingerprinter::finish(std::string_view content) -> fingerprint {
  auto& body = made_.parts[static_cast<std::size_t>(request_part::body)];
  switch (rule_->kind_) {
    case fingerprint_rule::kind::none: break;  // zeros
    case fingerprint_rule::kind::body: body = end(content_); break;
    case fingerprint_rule::kind::json:
    case fingerprint_rule::kind::pointers: body = digest_of_json(content); break;
  }
  return std::move(made_);
}

auto fingerprinter::digest_of_json(std::string_view content) -> part_digest {
  std::string canonical;
  if (!json::append_canonical(canonical, content)) {
    return digest(code_, digest_kind::exact_content, content);
  }
  if (rule_->kind_ == fingerprint_rule::kind::json) {
    return digest(code_, digest_kind::canonical_content, canonical);
  }
  begin(code_, digest_kind::chosen_content);
  for (auto const& pointer : rule_->pointers_) {
    // JSON has no value that is empty or holds a line feed: each line is one value or a missing
    // one.
    code_.update(pointer.find(canonical).value_or(""));
    code_.update("\n");
  }
  return end(code_);
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
