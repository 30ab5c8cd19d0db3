// SPDX-License-Identifier: Apache-2.0
#include "server_schema.hpp"

#include <tidegate/base/sha256.hpp>

#include <array>
#include <charconv>
#include <utility>

namespace tidegate::store_postgres {

using store::store_error;
using store::store_fault;

namespace {

/// What made each version from the one before. What has been released is never changed: another one
/// is added.
constexpr std::array<char const*, 5> migrations = {
    // 1: SCIM directories; what is true of the tables is said in directory/schema.hpp. Rows that
    // are changed again and again have room on their page for it.
    "CREATE TABLE part (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant bytea NOT NULL,"
    " type bytea NOT NULL, last_rid bigint NOT NULL, count bigint NOT NULL, UNIQUE (tenant, type))"
    " WITH (fillfactor = 50);"
    "CREATE TABLE resource (rid bigint PRIMARY KEY, id bytea NOT NULL, version bigint NOT NULL,"
    " in_groups boolean NOT NULL, text bytea NOT NULL) WITH (fillfactor = 90);"
    "CREATE TABLE block (id bigint PRIMARY KEY, count bigint NOT NULL) WITH (fillfactor = 50);"
    "CREATE TABLE directory_state (generation bigint NOT NULL);"
    "INSERT INTO directory_state VALUES (1);"
    "CREATE TABLE directory_index (type bytea NOT NULL, name bytea NOT NULL, sorts boolean NOT "
    "NULL,"
    " slot bigint NOT NULL, definition bytea NOT NULL, complete boolean NOT NULL,"
    " PRIMARY KEY (type, slot));"
    "CREATE TABLE entry (index_id bigint NOT NULL, key bytea NOT NULL, rid bigint NOT NULL,"
    " PRIMARY KEY (index_id, key, rid));"
    "CREATE TABLE member (group_rid bigint NOT NULL, seq bigint NOT NULL, member_rid bigint NOT "
    "NULL,"
    " member_id bytea NOT NULL, display bytea NOT NULL, PRIMARY KEY (group_rid, seq));"
    "CREATE UNIQUE INDEX member_of ON member (member_rid, group_rid)",
    // 2: records of idempotency keys, in the time of the server. `due` is when time makes something
    // of a record. Counters of scopes are locked before records, and a session that adds a key has
    // the counter of its scope.
    "CREATE TABLE idempotency_record (key bytea PRIMARY KEY, scope bigint NOT NULL,"
    " token bigint NOT NULL, state bigint NOT NULL, due bigint NOT NULL, record bytea NOT NULL,"
    " response bytea) WITH (fillfactor = 80);"
    "ALTER TABLE idempotency_record ALTER COLUMN response SET STORAGE EXTERNAL;"
    "CREATE INDEX idempotency_due ON idempotency_record (due);"
    "CREATE TABLE idempotency_scope (scope bigint PRIMARY KEY, keys bigint NOT NULL)"
    " WITH (fillfactor = 50);"
    // Makes a change if its condition holds. `outcome`: 0 no, with what there is; 1 made; 2 made, a
    // key more; 3 made, a key less; 4 the store is full; 5 the scope is.
    "CREATE FUNCTION idempotency_apply(p_key bytea, p_scope bigint, p_token bigint, p_states "
    "bigint,"
    " p_due_max bigint, p_next_token bigint, p_next_state bigint, p_next_due bigint, p_next bytea,"
    " p_response bytea, p_scope_max bigint, p_is_full boolean,"
    " OUT outcome bigint, OUT found_record bytea, OUT found_response bytea) LANGUAGE plpgsql AS $$ "
    "DECLARE counted bigint; "
    "BEGIN "
    " IF p_token IS NULL AND p_next IS NOT NULL THEN "
    "  SELECT 0, r.record, r.response INTO outcome, found_record, found_response"
    "   FROM idempotency_record AS r WHERE r.key = p_key; "
    "  IF FOUND THEN RETURN; END IF; "
    "  IF p_is_full THEN outcome := 4; RETURN; END IF; "
    "  INSERT INTO idempotency_scope AS s VALUES (p_scope, 1)"
    "   ON CONFLICT (scope) DO UPDATE SET keys = s.keys + 1 RETURNING s.keys INTO counted; "
    // Another session that adds it has waited for the counter, so what is seen now is how it is.
    "  SELECT 0, r.record, r.response INTO outcome, found_record, found_response"
    "   FROM idempotency_record AS r WHERE r.key = p_key; "
    "  IF NOT FOUND THEN "
    "   IF p_scope_max > 0 AND counted > p_scope_max THEN outcome := 5; "
    "   ELSE "
    "    INSERT INTO idempotency_record VALUES"
    "     (p_key, p_scope, p_next_token, p_next_state, p_next_due, p_next, p_response); "
    "    outcome := 2; RETURN; "
    "   END IF; "
    "  END IF; "
    "  UPDATE idempotency_scope AS s SET keys = s.keys - 1 WHERE s.scope = p_scope; "
    "  RETURN; "
    " END IF; "
    " IF p_token IS NULL THEN "
    "  outcome := 1; "
    " ELSIF p_next IS NULL THEN "
    "  PERFORM 1 FROM idempotency_scope AS s WHERE s.scope = p_scope FOR UPDATE; "
    "  DELETE FROM idempotency_record AS r WHERE r.key = p_key AND r.token = p_token"
    "   AND (p_states >> r.state::integer) & 1 = 1 AND r.due <= p_due_max; "
    "  IF FOUND THEN "
    "   UPDATE idempotency_scope AS s SET keys = s.keys - 1 WHERE s.scope = p_scope; "
    "   DELETE FROM idempotency_scope AS s WHERE s.scope = p_scope AND s.keys <= 0; "
    "   outcome := 3; RETURN; "
    "  END IF; "
    " ELSE "
    "  UPDATE idempotency_record AS r SET token = p_next_token, state = p_next_state,"
    "   due = p_next_due, record = p_next, response = p_response"
    "   WHERE r.key = p_key AND r.token = p_token"
    "   AND (p_states >> r.state::integer) & 1 = 1 AND r.due <= p_due_max; "
    "  IF FOUND THEN outcome := 1; RETURN; END IF; "
    " END IF; "
    " SELECT 0, r.record, r.response INTO outcome, found_record, found_response"
    "  FROM idempotency_record AS r WHERE r.key = p_key; "
    " IF NOT FOUND THEN outcome := CASE WHEN p_token IS NULL THEN 1 ELSE 0 END; END IF; "
    "END $$",
    // 3: unknown outcomes are listed, the newest first.
    "CREATE INDEX idempotency_unknown ON idempotency_record (due) WHERE state = 2",
    // 4: an id is there once in its part, and a key once in the indexes that are unique; writes
    // leave a mark by which they are found again. Versions before could make a resource twice when
    // the connection was lost at the commit: of those with one id the first is kept, which is the
    // one that was found and changed since, and it gets the groups of the others.
    "LOCK TABLE part, resource, block, entry, member IN SHARE ROW EXCLUSIVE MODE;"
    "CREATE TABLE doubled AS SELECT rid, kept FROM"
    " (SELECT rid, min(rid) OVER (PARTITION BY rid >> 40, id) AS kept FROM resource) AS r"
    " WHERE rid <> kept;"
    "UPDATE member AS m SET member_rid = d.kept FROM doubled AS d WHERE m.member_rid = d.rid"
    " AND NOT EXISTS (SELECT FROM member AS o WHERE o.group_rid = m.group_rid AND"
    " (o.member_rid = d.kept OR o.member_rid IN"
    " (SELECT b.rid FROM doubled AS b WHERE b.kept = d.kept AND b.rid < d.rid)));"
    "DELETE FROM member WHERE group_rid IN (SELECT rid FROM doubled)"
    " OR member_rid IN (SELECT rid FROM doubled);"
    "UPDATE resource AS r SET in_groups = true FROM doubled AS d WHERE r.rid = d.kept;"
    "UPDATE block AS b SET count = b.count - d.doubles FROM"
    " (SELECT rid >> 10 AS id, count(*) AS doubles FROM doubled GROUP BY 1) AS d"
    " WHERE b.id = d.id;"
    "UPDATE part AS p SET count = p.count - d.doubles FROM"
    " (SELECT rid >> 40 AS id, count(*) AS doubles FROM doubled GROUP BY 1) AS d"
    " WHERE p.id = d.id;"
    "DELETE FROM entry WHERE rid IN (SELECT rid FROM doubled);"
    "DELETE FROM resource WHERE rid IN (SELECT rid FROM doubled);"
    "DROP TABLE doubled;"
    "CREATE UNIQUE INDEX resource_id ON resource ((rid >> 40), id);"
    "CREATE UNIQUE INDEX entry_unique ON entry (index_id, key)"
    " WHERE index_id & 128 <> 0 AND key <> '\\x02';"
    "CREATE TABLE directory_writer (name bytea PRIMARY KEY, number bigint NOT NULL,"
    " used timestamptz NOT NULL) WITH (fillfactor = 50)",
    // 5: a digest of the secret that lookup keys are made with, which the first gateway leaves
    // here. The function says whether it is that one; where it must be, another one ends the
    // transaction.
    "CREATE TABLE idempotency_secret (id bigint PRIMARY KEY CHECK (id = 1), digest bytea NOT NULL);"
    "CREATE FUNCTION idempotency_check_secret(p_digest bytea, p_must boolean) RETURNS boolean"
    " LANGUAGE plpgsql AS $$ "
    "DECLARE known bytea; "
    "BEGIN "
    " SELECT s.digest INTO known FROM idempotency_secret AS s; "
    " IF NOT FOUND THEN "
    "  INSERT INTO idempotency_secret VALUES (1, p_digest) ON CONFLICT DO NOTHING; "
    // Of a gateway that was first it is seen now: what is inserted waits for its commit.
    "  SELECT s.digest INTO known FROM idempotency_secret AS s; "
    " END IF; "
    " IF p_must AND known IS DISTINCT FROM p_digest THEN "
    "  RAISE EXCEPTION 'another secret' USING ERRCODE = 'TG001'; "
    " END IF; "
    " RETURN known IS NOT DISTINCT FROM p_digest; "
    "END $$",
};
constexpr auto newest_version = static_cast<std::int64_t>(migrations.size());

/// A connection that runs scripts and waits for them.
class script_runner {
 public:
  script_runner(connection_handle handle, std::string name)
      : handle_(std::move(handle)), name_(std::move(name)) {}

  /// The first value of the last statement, as text.
  [[nodiscard]] auto run(std::string const& script) -> outcome<std::string> {
    rows const done(PQexec(handle_.get(), script.c_str()));
    auto const status = PQresultStatus(done.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      return failure(error(store_fault::unavailable, error_text(PQerrorMessage(handle_.get()))));
    }
    return done.size() > 0 ? std::string(done.octets(0, 0)) : std::string();
  }
  [[nodiscard]] auto error(store_fault fault, std::string const& text) const -> store_error {
    return {fault, name_ + ": " + text};
  }

 private:
  connection_handle handle_;
  std::string name_;
};

/// 0 where there is no schema.
[[nodiscard]] auto version_of(script_runner& server) -> outcome<std::int64_t> {
  // Not to_regclass: it may remember from before the lock that there was none.
  TIDEGATE_TRY(auto const tables,
               server.run("SELECT count(*) FROM pg_catalog.pg_tables"
                          " WHERE schemaname = 'tidegate' AND tablename = 'schema_version'"));
  if (tables == "0") {
    return 0;
  }
  TIDEGATE_TRY(auto const text, server.run("SELECT max(version) FROM tidegate.schema_version"));
  std::int64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  if (version > newest_version) {
    return failure(server.error(
        store_fault::damaged, "its schema tidegate has version " + text +
                                  ", and this program knows versions up to " +
                                  std::to_string(newest_version) + ": a newer one has been here"));
  }
  return version;
}

}  // namespace

auto lock_key(std::string_view what) -> std::int64_t {
  auto const digest = sha256::of("tidegate " + std::string(what));
  std::uint64_t key = 0;
  for (int i = 0; i < 8; ++i) {
    key = key << 8 | std::to_integer<std::uint64_t>(digest[static_cast<std::size_t>(i)]);
  }
  return static_cast<std::int64_t>(key);
}

auto prepare_schema(server_settings const& settings) -> outcome<void> {
  TIDEGATE_TRY(auto handle, connect(settings));
  script_runner server(std::move(handle), settings.name);
  TIDEGATE_TRY(auto const before, version_of(server));
  if (before == newest_version) {
    return {};  // without a right to change anything
  }
  TIDEGATE_TRY_VOID(
      server.run("SET statement_timeout TO '10min'; BEGIN; SELECT pg_advisory_xact_lock(" +
                 std::to_string(lock_key("schema")) + ")"));
  TIDEGATE_TRY(auto const version, version_of(server));  // another gateway may have made it
  if (version == 0) {
    TIDEGATE_TRY_VOID(
        server.run("CREATE SCHEMA IF NOT EXISTS tidegate;"
                   "CREATE TABLE schema_version (version bigint PRIMARY KEY)"));
  }
  for (auto number = version; number < newest_version; ++number) {
    TIDEGATE_TRY_VOID(server.run(migrations[static_cast<std::size_t>(number)]));
    TIDEGATE_TRY_VOID(
        server.run("INSERT INTO schema_version VALUES (" + std::to_string(number + 1) + ")"));
  }
  TIDEGATE_TRY_VOID(server.run("COMMIT"));
  return {};
}

}  // namespace tidegate::store_postgres
