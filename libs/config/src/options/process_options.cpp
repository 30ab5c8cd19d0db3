// SPDX-License-Identifier: Apache-2.0
#include "options/tables.hpp"

namespace tidegate::gateway {

namespace {

using enum option_type;
using enum availability;
using form = option_form;

constexpr option table[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
    {.path = "listen",
     .type = address,
     .form = form::one_or_list,
     .initial = "127.0.0.1:8080",
     .doc = "Where clients connect. Several addresses are a list.",
     .at_start = true},
    {.path = "listen.address",
     .type = address,
     .available = required,
     .doc = "The address.",
     .at_start = true},
    {.path = "listen.tls", .doc = "Speak TLS."},
    {.path = "listen.tls.certificate",
     .type = file,
     .available = required,
     .doc = "The certificate and its chain, PEM."},
    {.path = "listen.tls.key", .type = file, .available = required, .doc = "The private key, PEM."},
    {.path = "listen.tls.certificates",
     .available = later,
     .doc = "Several certificates, chosen by the name that the client asks for."},
    {.path = "listen.tls.min-version", .available = later, .doc = "The lowest version of TLS."},
    {.path = "listen.tls.client-ca",
     .available = later,
     .doc = "Who signs certificates of clients."},
    {.path = "listen.tls.client-auth",
     .available = later,
     .doc = "Whether clients need a certificate."},
    {.path = "listen.tls.acme", .available = later, .doc = "Certificates by ACME."},
    {.path = "listen.redirect-to-https", .available = later, .doc = "Send clients to `https`."},
    {.path = "listen.http2",
     .type = boolean,
     .initial = "true",
     .doc = "Offer HTTP/2: by ALPN with TLS, by prior knowledge without."},
    {.path = "listen.proxy-protocol",
     .type = boolean,
     .initial = "false",
     .doc = "Connections begin with the PROXY protocol, version 1 or 2. Only `trusted-proxies` may "
            "connect."},

    {.path = "admin",
     .type = address,
     .words = "off",
     .doc = "Console, metrics and health. Left out: off. Without `tokens` only an address of the "
            "loopback interface, or a path.",
     .at_start = true},
    {.path = "admin.address",
     .type = address,
     .available = required,
     .doc = "The address.",
     .at_start = true},
    {.path = "admin.tokens",
     .form = form::list,
     .doc = "Who may use it, but for `/healthz` and `/readyz`. Left out: all who reach it."},
    {.path = "admin.tokens.name",
     .type = name,
     .available = required,
     .doc = "For the log of what was changed."},
    {.path = "admin.tokens.sha256",
     .type = digest,
     .available = required,
     .doc = "Of the bytes of the token: `printf %s TOKEN | sha256sum`."},
    {.path = "admin.tokens.read-only",
     .type = boolean,
     .initial = "false",
     .doc = "Sees everything and changes nothing: what would gets 403."},
    {.path = "console", .doc = "What the console at the admin address may do."},
    {.path = "console.directory",
     .type = choice,
     .initial = "read",
     .words = "read|write|off",
     .doc = "The resources of `service: scim`, of every tenant: look at them, change and delete "
            "them too, or not even look."},
    {.path = "workers",
     .type = integer,
     .initial = "auto",
     .words = "auto",
     .min = 1,
     .max = 1024,
     .doc = "Event loops; `auto` is one for each core.",
     .at_start = true},
    {.path = "data",
     .type = file,
     .initial = "data",
     .doc = "Folder of what outlives a request; created with mode 0700.",
     .at_start = true},
    {.path = "secrets",
     .type = file,
     .doc = "File that keys are derived from; created with mode 0600. Left out: `secrets.key` in "
            "`data`. "
            "Gateways that share a store share it.",
     .at_start = true},

    {.path = "stores", .doc = "Where state is kept."},
    {.path = "stores.quota",
     .type = option_type::store,
     .initial = "memory",
     .words = "memory",
     .forms = "redis://HOST:PORT|rediss://HOST:PORT|redis+cluster://HOST:PORT,...|"
              "rediss+cluster://HOST:PORT,...|redis+sentinel://HOST:PORT,.../NAME|"
              "rediss+sentinel://HOST:PORT,.../NAME",
     .doc = "What is left of quotas: in this process, or where several gateways share it.",
     .at_start = true},
    {.path = "stores.quota-partitions",
     .type = integer,
     .initial = "1000000",
     .min = 1000,
     .max = 1'000'000'000,
     .doc = "How many partitions are kept in memory at once; beyond, new ones share a quota.",
     .at_start = true},
    {.path = "stores.idempotency",
     .type = option_type::store,
     .words = "memory",
     .forms = "sqlite:FILE|redis://HOST:PORT|rediss://HOST:PORT|redis+cluster://HOST:PORT,...|"
              "rediss+cluster://HOST:PORT,...|redis+sentinel://HOST:PORT,.../NAME|"
              "rediss+sentinel://HOST:PORT,.../NAME|postgres://HOST:PORT/DATABASE",
     .doc = "Idempotency keys and responses. `memory` forgets them at the end of the process. Left "
            "out: `idempotency.db` in `data`.",
     .at_start = true},
    {.path = "stores.idempotency-size",
     .type = option_type::size,
     .initial = "1GiB",
     .min = 1024 * 1024,
     .max = std::int64_t{1} << 46,
     .doc = "How much idempotency keys and responses may take together, in memory or in SQLite; "
            "beyond, new keys get 503. Not where they are in Redis (its `maxmemory`) or "
            "PostgreSQL.",
     .at_start = true},
    {.path = "stores.idempotency-replicas",
     .type = integer,
     .initial = "0",
     .min = 0,
     .max = 16,
     .doc =
         "Where idempotency keys are in Redis: how many replicas have to have a change before it "
         "counts.",
     .at_start = true},
    {.path = "stores.directory",
     .type = option_type::store,
     .forms = "sqlite:FILE|postgres://HOST:PORT/DATABASE",
     .doc = "The resources of `service: scim`. Left out: `directory.db` in `data`.",
     .at_start = true},
};

}  // namespace

auto process_options() -> std::span<option const> {
  return table;
}

}  // namespace tidegate::gateway
