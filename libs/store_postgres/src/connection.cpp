// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <tidegate/store_postgres/server_url.hpp>

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tidegate::store_postgres {

using store::store_error;
using store::store_fault;
using steady = std::chrono::steady_clock;

namespace {

// Of pg_type: they never change.
constexpr Oid type_bool = 16;
constexpr Oid type_bytea = 17;
constexpr Oid type_int8 = 20;
constexpr Oid type_bytea_array = 1001;
constexpr Oid type_int8_array = 1016;

/// How much is sent without looking at answers: so much fits into what both sides buffer.
constexpr std::size_t open_max = 512;
constexpr std::size_t open_octets_max = std::size_t{1} << 20;

template <class Number>
void append_number(std::string& out, Number value) {
  for (int shift = 8 * (static_cast<int>(sizeof value) - 1); shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> shift & 0xffU);
  }
}

/// The head of an array with one dimension and no nulls.
void append_array_head(std::string& out, Oid type, std::size_t size) {
  append_number(out, std::int32_t{size == 0 ? 0 : 1});
  append_number(out, std::int32_t{0});
  append_number(out, type);
  if (size != 0) {
    append_number(out, static_cast<std::int32_t>(size));
    append_number(out, std::int32_t{1});
  }
}

/// libpq quotes what it does not understand, which may be a password.
[[nodiscard]] auto without_quoted(std::string_view text) -> std::string {
  std::string out;
  bool quoted = false;
  for (char const c : text) {
    if (c == '"') {
      out += quoted ? "…" : "";
      quoted = !quoted;
    } else if (!quoted) {
      out += c;
    }
  }
  return out;
}

struct free_options {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};

}  // namespace

auto error_text(char const* message) -> std::string {
  std::string text(message != nullptr ? message : "");
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// ---- connecting ----

auto read_url(std::string const& url) -> outcome<server_settings> {
  auto const refused = [](std::string const& why) {
    return failure(store_error{store_fault::unavailable, "not a URL of PostgreSQL: " + why});
  };
  if (!url.starts_with("postgres://") && !url.starts_with("postgresql://")) {
    return refused("it has to begin with postgres://");
  }
  char* message = nullptr;
  std::unique_ptr<PQconninfoOption, free_options> const options(
      PQconninfoParse(url.c_str(), &message));
  if (!options) {
    auto const why = without_quoted(error_text(message));
    PQfreemem(message);
    return refused(why);
  }
  server_settings settings;
  auto const given = [&](std::string_view word) -> std::string {
    for (auto const& [known, value] : settings.words) {
      if (known == word) {
        return value;
      }
    }
    return {};
  };
  for (auto const* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) {
      settings.words.emplace_back(option->keyword, option->val);
    }
  }
  auto const host = given("host").empty() ? given("hostaddr") : given("host");
  auto const port = given("port");
  settings.name = "postgres://" + host + (port.empty() ? "" : ":" + port) + "/" + given("dbname");
  static constexpr std::array<std::pair<char const*, char const*>, 7> defaults = {{
      {"fallback_application_name", "tidegate"},
      {"target_session_attrs", "read-write"},
      {"connect_timeout", "5"},
      {"tcp_user_timeout", "10000"},
      {"keepalives_idle", "10"},
      {"keepalives_interval", "5"},
      {"keepalives_count", "2"},
  }};
  for (auto const& [word, value] : defaults) {
    if (given(word).empty()) {
      settings.words.emplace_back(word, value);
    }
  }
  return settings;
}

auto check_url(std::string const& url) -> result<void, std::string> {
  if (auto const read = read_url(url); !read) {
    return failure(read.error().text);
  }
  return {};
}

auto connect(server_settings const& settings) -> outcome<connection_handle> {
  std::vector<char const*> words;
  std::vector<char const*> values;
  for (auto const& [word, value] : settings.words) {
    words.push_back(word.c_str());
    values.push_back(value.c_str());
  }
  words.push_back(nullptr);
  values.push_back(nullptr);
  connection_handle handle(PQconnectdbParams(words.data(), values.data(), 0));
  auto const error = [&](char const* message) {
    return failure(
        store_error{store_fault::unavailable, settings.name + ": " + error_text(message)});
  };
  if (!handle) {
    return error("no memory");
  }
  if (PQstatus(handle.get()) != CONNECTION_OK) {
    return error(PQerrorMessage(handle.get()));
  }
  PQsetNoticeProcessor(
      handle.get(), [](void*, char const*) {}, nullptr);
  // A transaction whose gateway says nothing any more must not keep its locks.
  static constexpr char const* setup =
      "SET search_path TO tidegate;"
      "SET client_min_messages TO error;"
      "SET default_transaction_isolation TO 'read committed';"
      "SET default_transaction_read_only TO off;"
      "SET idle_in_transaction_session_timeout TO '60s';"
      "SET plan_cache_mode TO force_generic_plan;"
      "SET jit TO off;"
      "SELECT set_config('synchronous_commit', 'on', false)"
      " WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')";
  constexpr std::chrono::seconds timeout{5};  // as for the connection
  if (auto const done = receive(handle.get(), PQsendQuery(handle.get(), setup), timeout); !done) {
    return error(done.error().c_str());
  }
  return handle;
}

auto receive(PGconn* from, int sent, std::chrono::milliseconds timeout)
    -> result<rows, std::string> {
  auto const broken = [&] { return failure(error_text(PQerrorMessage(from))); };
  if (sent != 1) {
    return broken();
  }
  auto const deadline = std::chrono::steady_clock::now() + timeout;
  rows last;
  for (;;) {
    while (PQisBusy(from) != 0) {
      auto const left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd socket{PQsocket(from), POLLIN, 0};
      if (left.count() <= 0 || poll(&socket, 1, static_cast<int>(left.count())) == 0) {
        return failure(std::string("no answer in time"));
      }
      if (PQconsumeInput(from) != 1) {
        return broken();
      }
    }
    auto* const next = PQgetResult(from);
    if (next == nullptr) {
      return last;
    }
    last = rows(next);
    auto const status = PQresultStatus(next);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      return failure(error_text(PQresultErrorMessage(next)));
    }
  }
}

// ---- values ----

void parameters::add_value(Oid type, std::string_view octets) {
  types_.push_back(type);
  offsets_.push_back(buffer_.size());
  lengths_.push_back(static_cast<int>(octets.size()));
  formats_.push_back(1);
  buffer_ += octets;
}

void parameters::add(std::int64_t value) {
  std::string octets;
  append_number(octets, value);
  add_value(type_int8, octets);
}

void parameters::add(std::optional<std::int64_t> value) {
  add(value.value_or(0));
  lengths_.back() = value ? lengths_.back() : -1;
}

void parameters::add(bool value) {
  add_value(type_bool, std::string_view(value ? "\1" : "\0", 1));
}

void parameters::add(std::string_view octets) {
  add_value(type_bytea, octets);
}

void parameters::add(std::optional<std::string_view> octets) {
  add_value(type_bytea, octets.value_or(std::string_view()));
  lengths_.back() = octets ? lengths_.back() : -1;
}

void parameters::add(std::vector<std::int64_t> const& values) {
  std::string octets;
  append_array_head(octets, type_int8, values.size());
  for (auto const value : values) {
    append_number(octets, std::int32_t{sizeof value});
    append_number(octets, value);
  }
  add_value(type_int8_array, octets);
}

void parameters::add(std::vector<std::string_view> const& values) {
  std::string octets;
  append_array_head(octets, type_bytea, values.size());
  for (auto const value : values) {
    append_number(octets, static_cast<std::int32_t>(value.size()));
    octets += value;
  }
  add_value(type_bytea_array, octets);
}

auto parameters::values() const -> std::vector<char const*> {
  std::vector<char const*> all;
  all.reserve(offsets_.size());
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    all.push_back(lengths_[i] < 0 ? nullptr : buffer_.data() + offsets_[i]);
  }
  return all;
}

auto rows::number(int row, int column) const noexcept -> std::int64_t {
  auto const value = octets(row, column);
  // The first octet has the sign.
  std::uint64_t number = !value.empty() && value.size() > 1 && value.front() < 0 ? UINT64_MAX : 0;
  for (char const c : value) {
    number = number << 8 | static_cast<unsigned char>(c);
  }
  return static_cast<std::int64_t>(number);
}

// ---- statements ----

connection::connection(connection_handle handle, std::string name,
                       std::chrono::milliseconds timeout)
    : handle_(std::move(handle)), name_(std::move(name)), timeout_(timeout) {}

auto connection::open(server_settings const& settings, std::chrono::milliseconds timeout,
                      std::span<std::string_view const> statements) -> outcome<connection> {
  TIDEGATE_TRY(auto handle, connect(settings));
  connection made(std::move(handle), settings.name, timeout);
  if (PQsetnonblocking(made.handle_.get(), 1) != 0 ||
      PQenterPipelineMode(made.handle_.get()) != 1) {
    return failure(made.lost(error_text(PQerrorMessage(made.handle_.get()))));
  }
  // The server gives up what we have given up.
  auto const limit = std::to_string(timeout.count());
  TIDEGATE_TRY_VOID(made.send("SET statement_timeout TO " + limit));
  for (std::size_t i = 0; i < statements.size(); ++i) {
    auto const sql = std::string(statements[i]);
    auto const name = "s" + std::to_string(i);
    TIDEGATE_TRY_VOID(made.sent(
        PQsendPrepare(made.handle_.get(), name.c_str(), sql.c_str(), 0, nullptr), sql.size()));
  }
  TIDEGATE_TRY_VOID(made.finish());
  return made;
}

auto connection::lost(std::string const& why) -> store_error {
  broken_ = true;
  return error(store_fault::unavailable, why);
}

auto connection::make_room() -> outcome<void> {
  if (open_ < open_max && open_octets_ < open_octets_max) {
    return {};
  }
  TIDEGATE_TRY_VOID(finish());
  return {};
}

auto connection::sent(int code, std::size_t octets) -> outcome<void> {
  if (code != 1) {
    return failure(lost(error_text(PQerrorMessage(handle_.get()))));
  }
  ++open_;
  open_octets_ += octets;
  return {};
}

auto connection::send(std::size_t statement, parameters const& values) -> outcome<void> {
  TIDEGATE_TRY_VOID(make_room());
  auto const name = "s" + std::to_string(statement);
  return sent(PQsendQueryPrepared(handle_.get(), name.c_str(), values.size(),
                                  values.values().data(), values.lengths(), values.formats(), 1),
              values.octets());
}

auto connection::send(std::string const& sql, parameters const& values) -> outcome<void> {
  TIDEGATE_TRY_VOID(make_room());
  return sent(PQsendQueryParams(handle_.get(), sql.c_str(), values.size(), values.types(),
                                values.values().data(), values.lengths(), values.formats(), 1),
              sql.size() + values.octets());
}

auto connection::finish() -> outcome<std::vector<rows>> {
  auto const statements = std::exchange(open_, 0);
  open_octets_ = 0;
  if (broken_) {
    return failure(error(store_fault::unavailable, "the connection is lost"));
  }
  if (statements > 0 && PQpipelineSync(handle_.get()) != 1) {
    return failure(lost(error_text(PQerrorMessage(handle_.get()))));
  }
  while (!left_.empty()) {
    auto const before = left_.front();
    left_.pop_front();
    auto const read = read_flight(before);
    if (!read && broken_) {
      return failure(read.error());
    }
  }
  return statements > 0 ? read_flight(statements) : std::vector<rows>();
}

void connection::leave() {
  open_octets_ = 0;
  if (open_ == 0 || broken_) {
    return;
  }
  if (PQpipelineSync(handle_.get()) != 1 || PQflush(handle_.get()) < 0) {
    broken_ = true;
  }
  left_.push_back(std::exchange(open_, 0));
}

/// The next result of libpq, nullptr at the end of those of a statement.
auto connection::next_result(steady::time_point deadline) -> outcome<PGresult*> {
  auto* const c = handle_.get();
  for (;;) {
    auto const unsent = PQflush(c);
    if (unsent < 0) {
      return failure(lost(error_text(PQerrorMessage(c))));
    }
    if (PQisBusy(c) == 0) {
      return PQgetResult(c);
    }
    auto const wait =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady::now()).count();
    if (wait <= 0) {
      return failure(lost("no answer in time"));
    }
    pollfd wanted{PQsocket(c), static_cast<short>(POLLIN | (unsent != 0 ? POLLOUT : 0)), 0};
    if (poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(wait, 60'000))) > 0 &&
        (wanted.revents & ~POLLOUT) != 0 && PQconsumeInput(c) != 1) {
      return failure(lost(error_text(PQerrorMessage(c))));
    }
  }
}

auto connection::read_flight(std::size_t statements) -> outcome<std::vector<rows>> {
  // The server has its own limit; this one is for when it does not answer.
  auto const deadline = steady::now() + timeout_ + std::chrono::seconds(2);
  std::vector<rows> all;
  all.reserve(statements);
  std::optional<store_error> first_error;
  for (std::size_t i = 0; i <= statements; ++i) {
    bool const is_sync = i == statements;
    for (bool any = false;; any = true) {
      TIDEGATE_TRY(auto* const result, next_result(deadline));
      if (result == nullptr) {
        // A statement has a result and then nothing; nothing at all comes when the connection is
        // gone.
        if (!any) {
          return failure(lost(error_text(PQerrorMessage(handle_.get()))));
        }
        break;
      }
      rows given(result);
      switch (PQresultStatus(result)) {
        case PGRES_COMMAND_OK:
        case PGRES_TUPLES_OK: all.push_back(std::move(given)); break;
        case PGRES_PIPELINE_ABORTED: break;
        case PGRES_PIPELINE_SYNC: break;
        default: {
          auto const* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
          auto const* const severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
          auto const text = error_text(PQresultErrorMessage(result));
          sqlstate_ = state != nullptr ? state : "";
          // FATAL, PANIC, and what libpq says itself when the server is gone: no Sync follows,
          // although the connection may still look as if it were there. An error in place of the
          // Sync is one of no statement.
          if (severity == nullptr || severity != std::string_view("ERROR") || is_sync ||
              PQstatus(handle_.get()) != CONNECTION_OK) {
            return failure(lost(text));
          }
          if (!first_error) {
            // 53: out of disk, memory or connections.
            bool const full = sqlstate_ == "53100";
            first_error = error(full ? store_fault::no_space : store_fault::unavailable, text);
          }
          break;
        }
      }
      if (is_sync) {
        break;
      }
    }
  }
  if (first_error) {
    return failure(*std::move(first_error));
  }
  return all;
}

}  // namespace tidegate::store_postgres
