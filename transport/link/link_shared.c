/* SPDX-License-Identifier: Apache-2.0
 *
 * How both ends of a Unix socket agree on shared memory. Both hellos ask for it; the accepting side
 * creates it and passes it with its ping, the dialing side replies with a ping that says whether it
 * has mapped it. After the pings all bytes go through it.
 */
#include "transport/channel/shared.h"
#include "transport/link/link_private.h"

bool link_asks_shared(const struct link *link)
{
    return link->config->shared_bytes && channel_passes_fds(link->channel);
}

bool link_shares_memory(const struct link *link)
{
    return link->shared_bytes && !channel_passes_fds(link->channel);
}

/* Chooses the largest ring size that both sides accept. */
void link_agree_shared(struct link *link, int64_t theirs)
{
    size_t bytes = SHARED_MAX, wanted = link->config->shared_bytes;
    if (theirs > 0 && (uint64_t)theirs < wanted)
        wanted = (size_t)theirs;
    while (bytes > wanted && bytes > SHARED_MIN)
        bytes /= 2;
    link->shared_bytes = theirs > 0 && link_asks_shared(link) ? bytes : 0;
}

static void send_ping(struct link *link, size_t shared)
{
    msgpack_packer *packer = link_begin(link, RECORD_PING, shared > 0);
    if (shared)
        pack_key_uint(packer, "shared", shared);
    link_send_own(link);
}

/* The peer's hello was accepted: sends a ping. */
void link_welcome(struct link *link)
{
    if (!link->shared_bytes) {
        send_ping(link, 0);
    } else if (!link->dialed) {
        struct error ignored = ERROR_INIT; /* the socket can be used instead */
        int fds[SHARED_FDS];
        link->offered = shared_create(link->fd, link->shared_bytes, fds, &ignored);
        if (link->offered)
            channel_give_fds(link->channel, fds);
        send_ping(link, link->offered ? link->shared_bytes : 0);
    }
}

static void use_channel(struct link *link, struct channel *channel)
{
    link->channel->type->free(link->channel);
    link->channel = channel;
    shared_attach(channel, link);
}

/* The peer's ping came: the link can be opened. */
void link_take_welcome(struct link *link, const struct record *record)
{
    int64_t bytes = 0;
    bool shared =
        record_get_int(&record->header, "shared", &bytes) && bytes == (int64_t)link->shared_bytes;
    if (link->shared_bytes && link->dialed) {
        /* The dialing side maps the memory that was passed, and says whether it could. */
        struct error ignored = ERROR_INIT;
        int fds[SHARED_FDS];
        struct channel *channel = NULL;
        if (shared && channel_take_fds(link->channel, fds))
            channel = shared_map(link->fd, link->shared_bytes, fds, &ignored);
        send_ping(link, channel ? link->shared_bytes : 0);
        if (channel)
            use_channel(link, channel);
    } else if (link->offered) {
        struct channel *channel = link->offered;
        link->offered = NULL;
        if (shared)
            use_channel(link, channel);
        else
            channel->type->free(channel);
    }
    link_is_open(link);
}
