// SPDX-License-Identifier: Apache-2.0
//
// A server that takes a user over TLS and with a password only.
#include <tidegate/store_postgres/idempotency_store.hpp>

#include "support/idempotency_store_contract.hpp"
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tidegate::store_postgres {
namespace {

using store::contract::claim_of;
using store::contract::key_of;
using store::contract::made;
using store::contract::record_in;
using test_support::postgres_server;

class store_postgres_tls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!postgres_server::is_installed()) {
      return;
    }
    auto& server = postgres_server::shared();
    // The programs run as the server does, in its folder: so it may read what they write.
    auto const run = [&](std::string const& program) {
      server.run_sql("COPY (SELECT 1) TO PROGRAM $$" + program + " >/dev/null 2>&1$$");
    };
    for (std::string const name : {"server", "other"}) {
      run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
          "/CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout " +
          name + ".key -out " + name + ".crt && chmod 600 " + name + ".key");
    }
    run(R"(sed -i "1i hostssl all guarded all scram-sha-256" pg_hba.conf)");
    run(R"(sed -i "2i host all guarded all reject" pg_hba.conf)");
    server.run_sql("CREATE ROLE guarded SUPERUSER LOGIN PASSWORD 'p@ss:word'");
    server.run_sql("ALTER SYSTEM SET ssl = on");
    server.run_sql("SELECT pg_reload_conf()");
    for (std::string const name : {"server", "other"}) {
      std::ofstream(certificate(name))
          << server.run_sql("SELECT pg_read_file('" + name + ".crt')") << '\n';
    }
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder()); }

  [[nodiscard]] static auto folder() -> std::filesystem::path {
    auto const made = std::filesystem::temp_directory_path() /
                      ("tidegate_postgres_tls_" + std::to_string(getpid()));
    std::filesystem::create_directories(made);
    return made;
  }
  [[nodiscard]] static auto certificate(std::string const& name) -> std::string {
    return folder() / (name + ".crt");
  }
  /// With TLS to a server that is who it says, as far as `trusted` says so.
  [[nodiscard]] static auto url(std::string const& password, std::string const& trusted)
      -> std::string {
    auto& server = postgres_server::shared();
    auto const plain = server.fresh_database();
    auto const database = plain.substr(plain.rfind('/'));
    return "postgres://guarded:" + password + "@127.0.0.1:" + std::to_string(server.port()) +
           database + "?sslmode=verify-full&sslrootcert=" + certificate(trusted);
  }
  [[nodiscard]] static auto error_of(std::string const& url) -> std::string {
    auto const opened = open_idempotency_store({.url = url});
    return opened ? "it was opened" : opened.error().text;
  }
};

TEST_F(store_postgres_tls, opens_and_keeps_records) {
  auto store = open_idempotency_store({.url = url("p%40ss%3Aword", "server")});
  ASSERT_TRUE(store.has_value()) << store.error().text;
  auto const claim = claim_of(key_of("a"), 1);
  ASSERT_TRUE(made(**store, claim));
  EXPECT_EQ(record_in(**store, key_of("a"))->token, claim.next->token);
  EXPECT_EQ(postgres_server::shared().run_sql(
                "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                " WHERE usename = 'guarded'"),
            "t");
}

TEST_F(store_postgres_tls, refuses_a_server_without_a_trusted_certificate) {
  auto const error = error_of(url("p%40ss%3Aword", "other"));
  EXPECT_NE(error.find("certificate verify failed"), std::string::npos) << error;
}

TEST_F(store_postgres_tls, says_that_the_password_is_wrong_and_not_which_it_was) {
  auto const error = error_of(url("guess%40ed", "server"));
  EXPECT_NE(error.find("password authentication failed"), std::string::npos) << error;
  EXPECT_EQ(error.find("guess"), std::string::npos) << error;
}

TEST_F(store_postgres_tls, is_not_left_out_where_the_server_wants_it) {
  auto wanted = url("p%40ss%3Aword", "server");
  wanted.replace(wanted.find("verify-full"), 11, "disable");
  auto const error = error_of(wanted);
  EXPECT_NE(error.find("rejects connection"), std::string::npos) << error;
  EXPECT_EQ(error.find("p@ss"), std::string::npos) << error;
}

}  // namespace
}  // namespace tidegate::store_postgres
