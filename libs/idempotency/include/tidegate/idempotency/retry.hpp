// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/idempotency/problems.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

/// The client's side of retries: which requests may be sent again, after which answers, and when
/// (RFC 9110, section 9.2.2; draft-07, sections 2.6 and 2.7). Nothing in here waits, sends or reads
/// a clock, so that any HTTP client can use it.
namespace tidegate::TIDEGATE_ABI::idempotency {

/// Whether sending a request with this method twice does no more than sending it once: GET, HEAD,
/// OPTIONS, TRACE, PUT, DELETE (RFC 9110, section 9.2.2).
[[nodiscard]] auto is_idempotent(std::string_view method) noexcept -> bool;

/// What there is to know of a request.
struct repeatability {
  bool idempotent_method = false;
  bool has_key = false;  ///< it carries an Idempotency-Key, the same in every attempt
};

/// How far an attempt came.
enum class delivery : std::uint8_t {
  not_sent,   ///< no connection came about: the server has seen nothing of the request
  no_answer,  ///< it went out, in part at least, and no whole answer came: lost, cut, too late
  answered,
};

/// What became of one attempt.
struct attempt {
  idempotency::delivery delivery = delivery::answered;
  int status = 0;  ///< of the answer
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  std::optional<std::chrono::seconds> retry_after{};  ///< from now on
  std::optional<problem_code> code{};  ///< what the answer says of the key: see `read_problem_code`
  // NOLINTEND(readability-redundant-member-init)
};

/// The bounds that a user sets; they hold whatever a server says.
struct retry_rules {
  std::uint32_t retries_max =
      4;  ///< of one request; waiting for one that is in flight does not count
  std::chrono::nanoseconds backoff_first = std::chrono::milliseconds(200);
  std::chrono::nanoseconds backoff_max = std::chrono::seconds(30);
  /// When a server asks for more than this, its answer is final.
  std::chrono::nanoseconds retry_after_max = std::chrono::minutes(10);
};

/// Whether to send again, and when.
struct retry_verdict {
  bool again = false;                ///< send it once more; else the outcome is final
  std::chrono::nanoseconds wait{0};  ///< when `again`: not earlier than this from now
  bool counts = true;                ///< against `retries_max`
  bool asked_for = false;  ///< the server has said when to come: no matter for a `retry_budget`
  auto operator==(retry_verdict const&) const -> bool = default;
};

/// Exponential backoff with full jitter: anything from 0 to `backoff_first` times 2 to the power of
/// `retries`, at most `backoff_max`. `randomness` is any number, of which all bits count.
[[nodiscard]] auto backoff(retry_rules const& rules, std::uint32_t retries,
                           std::uint64_t randomness) noexcept -> std::chrono::nanoseconds;

/// Whether to send a request once more after `retries` counted ones, and when.
///
/// | what happened | what to do |
/// |---|---|
/// | not sent | again, whatever the method: no server has seen it |
/// | no answer; 408, 425, 429, 502, 503, 504 | again, if the method is idempotent or it has a key |
/// | 409 to a key that is in flight | again for as long as the caller has time |
/// | 409 to a key, with Retry-After, or to a retry with no reason given | again: it may still run |
/// | everything else, 400, 422 and 500 among it | final |
///
/// Retry-After comes first: the wait is never shorter, and by a jitter of up to `backoff_first`
/// longer, so that those who were told the same do not come back at once. Without it the wait is a
/// `backoff`.
[[nodiscard]] auto decide_retry(repeatability const& request, attempt const& outcome,
                                std::uint32_t retries, retry_rules const& rules,
                                std::uint64_t randomness) noexcept -> retry_verdict;

/// What an answer says of a key: the member `code` of its problem details. Nothing for other
/// content, for codes that are not ours, and for content above 64 KiB.
[[nodiscard]] auto read_problem_code(std::string_view content_type, std::string_view content)
    -> std::optional<problem_code>;

/// How many retries a client may make, so that it does not load a server more while that fails.
struct budget_rules {
  double share = 0.2;     ///< retries for each request
  double per_second = 1;  ///< and for each second, so that a client with few requests may retry too
  double tokens_max = 20;  ///< how many are kept; the budget begins with so many
};

/// The retries that a client has left, over all of its requests to one session.
class retry_budget {
 public:
  explicit retry_budget(budget_rules const& rules = {}) noexcept
      : rules_(rules), tokens_(rules.tokens_max) {}

  /// A new request goes out at `now`: no retry.
  void earn(instant now) noexcept;
  /// Takes one retry; false when there is none left. A clock that steps back gives nothing.
  [[nodiscard]] auto take(instant now) noexcept -> bool;

 private:
  void add(double tokens) noexcept;
  void pass_time(instant now) noexcept;

  budget_rules rules_;
  double tokens_;
  std::optional<instant> last_;
};

}  // namespace tidegate::TIDEGATE_ABI::idempotency
