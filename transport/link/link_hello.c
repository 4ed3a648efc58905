/* SPDX-License-Identifier: Apache-2.0
 *
 * Hellos: the identity of the other end, and the features of both.
 */
#include <string.h>

#include "base/memory.h"
#include "transport/link/link_private.h"

#define LEASE_MIN 0.03
#define LEASE_MAX 3600.0

void link_make_name(struct link *link)
{
    struct str name = STR_INIT;
    const char *task = *link->peer.task ? link->peer.task : link->expected ? link->expected : "";
    str_printf(&name, "%s at %s", *task ? task : "peer", link->address);
    if (link->peer.incarnation && *task)
        str_printf(&name, ", incarnation %llu", (unsigned long long)link->peer.incarnation);
    mem_free(link->name);
    link->name = mem_strdup(name.data);
    str_release(&name);
}

static bool skips_sums(const struct link *link)
{
    return link->safe && !link->config->sums;
}

void link_send_hello(struct link *link)
{
    const struct link_config *config = link->config;
    bool shared = link_asks_shared(link);
    msgpack_packer *packer = link_begin(link, RECORD_HELLO, 7 + shared);
    pack_key_int(packer, "major", STREAM_MAJOR);
    pack_key_int(packer, "minor", STREAM_MINOR);
    pack_key_text(packer, "producer", config->producer);
    pack_key_text(packer, "task", config->self.task);
    pack_key_uint(packer, "incarnation", config->self.incarnation);
    pack_key_float(packer, "lease", config->lease);
    pack_key_bool(packer, "sums", !skips_sums(link));
    if (shared)
        pack_key_uint(packer, "shared", config->shared_bytes);
    link_send_own(link);
}

static bool is_short(const char *text)
{
    size_t n = strlen(text);
    return n <= 256 && str_is_printable(text, n);
}

int link_take_hello(struct link *link, struct record *record, struct error *err)
{
    bool sums;
    int64_t shared = 0;
    int64_t major, minor;
    if (!record_get_int(&record->header, "major", &major) ||
        !record_get_int(&record->header, "minor", &minor))
        return error_set(err, ERR_PROTOCOL, "a hello without a version");
    if (major != STREAM_MAJOR) {
        link->refusal = REFUSAL_WRONG_VERSION;
        return error_set(err, ERR_PROTOCOL, "format %lld.%lld, but this program speaks %d.%d",
                         (long long)major, (long long)minor, STREAM_MAJOR, STREAM_MINOR);
    }
    const msgpack_object *header = &record->header;
    const char *task = record_text(header, "task");
    int64_t incarnation;
    if (!task || !is_short(task) || !record_get_int(header, "incarnation", &incarnation) ||
        incarnation < 0)
        return error_set(err, ERR_PROTOCOL, "a hello that does not say who it is");
    mem_free((void *)(uintptr_t)link->peer.task);
    link->peer = (struct link_hello){mem_strdup(task), (uint64_t)incarnation};
    if (!record_get_float(header, "lease", &link->peer_lease) ||
        !(link->peer_lease >= LEASE_MIN && link->peer_lease <= LEASE_MAX))
        link->peer_lease = link->config->lease;
    if (link->expected && *link->expected && strcmp(link->expected, task))
        return error_set(err, ERR_CONFIG, "'%s' is there instead of '%s'", task, link->expected);
    if (link->config->hello(link->config->context, link, err))
        return err->code;
    link_make_name(link);
    if (!record_get_bool(&record->header, "sums", &sums))
        sums = true;
    record_get_int(&record->header, "shared", &shared);
    link_agree_shared(link, shared);
    link->outer.decoder.sums = sums || !skips_sums(link);
    pthread_mutex_lock(&link->out.lock);
    link->out.sums = link->outer.decoder.sums;
    pthread_mutex_unlock(&link->out.lock);
    return 0;
}
