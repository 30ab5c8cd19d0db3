// SPDX-License-Identifier: Apache-2.0
#include "keys/key_connection.hpp"

#include "keys/key_statements.hpp"

#include <chrono>
#include <memory>
#include <utility>

namespace tidegate::store_postgres {

using store::store_error;
using store::store_fault;

auto open_key_connection(idempotency_options const& options, server_settings const& settings)
    -> outcome<key_connection> {
  TIDEGATE_TRY(auto handle, connect(settings));
  auto* const c = handle.get();
  auto const failed = [&] {
    return failure(store_error{store_fault::unavailable,
                               settings.name + ": " + error_text(PQerrorMessage(c))});
  };
  auto const answered = [&](int sent) -> outcome<rows> {
    auto got = receive(c, sent, options.timeout);
    if (!got) {
      return failure(store_error{store_fault::unavailable, settings.name + ": " + got.error()});
    }
    return *std::move(got);
  };
  // All of it is one message: requests wait for the connection, and round trips are what takes long
  // where the server is far or busy.
  auto const setup = setup_command(options.timeout);
  TIDEGATE_TRY_VOID(answered(PQsendQuery(c, setup.c_str())));
  if (!options.secret_digest.empty()) {
    parameters const values(options.secret_digest, false);
    TIDEGATE_TRY(auto const found, answered(send_prepared(c, "secret", values) ? 1 : 0));
    if (found.size() != 1 || !found.boolean(0, 0)) {
      return failure(store::stored_with_another_secret(settings.name));
    }
  }
  key_connection made{std::move(handle), {}, 0};
  auto const read_clock = [&] {
    return options.clock
               ? options.clock()
               : std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  };
  for (int i = 0; i < 3; ++i) {
    auto const asked = read_clock();
    TIDEGATE_TRY(auto const found, answered(send_prepared(c, "count", parameters()) ? 1 : 0));
    if (found.size() != 1) {
      return failed();
    }
    made.clock.update(asked, time_of(found.number(0, 1)), read_clock());
    made.records = found.number(0, 0);
  }
  if (PQsetnonblocking(c, 1) != 0 || PQenterPipelineMode(c) != 1) {
    return failed();
  }
  return made;
}

key_connector::key_connector(engine::loop& loop, idempotency_options const& options,
                             server_settings const& settings,
                             std::function<void(outcome<key_connection>)> done)
    : loop_(loop), options_(options), settings_(settings), done_(std::move(done)) {}

key_connector::~key_connector() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

void key_connector::start() {
  if (thread_.joinable()) {
    thread_.join();  // it has posted what it made and is at its end
  }
  is_connecting_ = true;
  thread_ = std::thread([this] {
    auto made = std::make_shared<outcome<key_connection>>(open_key_connection(options_, settings_));
    loop_.post([this, made] {
      is_connecting_ = false;
      done_(std::move(*made));
    });
  });
}

}  // namespace tidegate::store_postgres
