/* SPDX-License-Identifier: Apache-2.0
 *
 * Impossible records: from members to a server, and from a server to members.
 */
#include "lib/reductions.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"

/* ---- records of members ---- */

struct forged {
    int64_t what;
    const char *members[4];  /* NULL ends the list; if the first is NULL, the field is left out */
    const char *name, *text; /* a text instead of the members */
    bool mean;
    int64_t elements;
    enum dtype type;
    int rank, n_tensors;
};

static void pack_members(msgpack_packer *packer, const struct forged *f)
{
    size_t n = 0;
    while (n < 4 && f->members[n])
        n++;
    pack_key(packer, "members");
    if (f->text) {
        pack_text(packer, f->text);
        return;
    }
    msgpack_pack_array(packer, n);
    for (size_t i = 0; i < n; i++)
        pack_text(packer, f->members[i]);
}

static void forge(struct members *all, int from, const struct forged *f)
{
    struct error ignored = ERROR_INIT;
    struct peer *peer = conns_peer(all->ends[from].conns, "ps:0");
    struct shape shape = f->rank == 1 ? shape_vector(f->elements) : shape_matrix(1, f->elements);
    struct named_tensor tensors[2];
    assert_non_null(peer);
    msgpack_packer *packer = peer_begin(peer, RECORD_REDUCE, f->name ? 8 : 7, &ignored);
    assert_non_null(packer);
    pack_key(packer, "what");
    msgpack_pack_int64(packer, f->what);
    if (f->name) {
        pack_key(packer, "name");
        pack_text(packer, f->name);
    }
    pack_key(packer, "step");
    msgpack_pack_int64(packer, 1);
    pack_key(packer, "iteration");
    msgpack_pack_uint64(packer, 0);
    pack_key(packer, "index");
    msgpack_pack_uint64(packer, 0);
    pack_members(packer, f);
    pack_key(packer, "mean");
    if (f->mean)
        msgpack_pack_true(packer);
    else
        msgpack_pack_false(packer);
    pack_key(packer, "priority");
    msgpack_pack_int(packer, 0);
    for (int i = 0; i < f->n_tensors; i++) {
        tensors[i].name = "";
        fill(&tensors[i].tensor, f->type, &shape, 0);
    }
    peer_end(peer, tensors, f->n_tensors, &ignored);
    for (int i = 0; i < f->n_tensors; i++)
        tensor_release(&tensors[i].tensor);
    peer_release(peer);
}

#define BOTH                                                                                       \
    {                                                                                              \
        "worker:0", "worker:1"                                                                     \
    }

static const struct forged good = {REDUCE_PART, BOTH, "g", NULL, false, 3, FLOAT32, 1, 1};

/* Worker 0 sent a valid part before; the second records are worker 1's. */
static void records_are_checked(void **state)
{
    static const int counts[2] = {2, 1};
    static const struct {
        struct forged record;
        const char *why;
    } cases[] = {
        {{REDUCE_BRING, BOTH, "g", NULL, false, 3, FLOAT32, 1, 1},
         "a reduce record that has no place here"},
        {{REDUCE_SUM, BOTH, "g", NULL, false, 3, FLOAT32, 1, 1},
         "a reduce record that has no place here"},
        {{-1, BOTH, "g", NULL, false, 3, FLOAT32, 1, 1}, "a reduce record that has no place here"},
        {{REDUCE_PART, BOTH, NULL, NULL, false, 3, FLOAT32, 1, 1},
         "a reduce record that says not which it is"},
        {{REDUCE_PART, BOTH, "g", "worker:1", false, 3, FLOAT32, 1, 1},
         "sends of 'g' what is not among its own"},
        {{REDUCE_PART, {NULL}, "g", NULL, false, 3, FLOAT32, 1, 1},
         "sends of 'g' what is not among its own"},
        {{REDUCE_PART, {"worker:0", "worker:2"}, "g", NULL, false, 3, FLOAT32, 1, 1},
         "sends of 'g' what is not among its own"},
        {{REDUCE_PART, {"worker:0", "worker:1", "worker:2"}, "g", NULL, false, 3, FLOAT32, 1, 1},
         "sends another block of 'g' than others"},
        {{REDUCE_PART, BOTH, "g", NULL, true, 3, FLOAT32, 1, 1},
         "sends another block of 'g' than others"},
        {{REDUCE_PART, BOTH, "g", NULL, false, 4, FLOAT32, 1, 1},
         "sends another block of 'g' than others"},
        {{REDUCE_PART, BOTH, "g", NULL, false, 3, INT32, 1, 1},
         "sends another block of 'g' than others"},
        {{REDUCE_PART, BOTH, "g", NULL, false, 3, BOOL, 1, 1}, "wants to add bool of 'g'"},
        {{REDUCE_PART, BOTH, "g", NULL, true, 3, INT32, 1, 1}, "wants to add int32 of 'g'"},
        {{REDUCE_PART, BOTH, "g", NULL, false, 3, FLOAT32, 2, 1}, "sends of 'g' what is no block"},
        {{REDUCE_PART, BOTH, "g", NULL, false, 3, FLOAT32, 1, 0}, "sends of 'g' what is no block"},
        {{REDUCE_PART, BOTH, "g", NULL, false, 3, FLOAT32, 1, 2}, "sends of 'g' what is no block"},
        {{REDUCE_PART, BOTH, "g", NULL, false, CHUNK_BYTES / 4 + 1, FLOAT32, 1, 1},
         "sends of 'g' what is no block"},
        {{REDUCE_RELAY, BOTH, "g", NULL, false, 3, FLOAT32, 1, 0}, "sends of 'g' what is no block"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct members all;
        struct peer *peer;
        members_start_served(&all, counts, 0, NULL);
        forge(&all, 0, &good);
        usleep(20000); /* so that it comes first */
        forge(&all, 1, &cases[i].record);
        while ((peer = conns_peer(all.ends[1].conns, "ps:0"))) { /* until the link has ended */
            peer_release(peer);
            usleep(1000);
        }
        member_kill(&all.ends[2]);
        if (!strstr(all.said, cases[i].why) || !str_starts(all.said, "worker:1 at ") ||
            strchr(all.said, '\n'))
            fail_msg("case %zu: expected '%s': '%s'", i, cases[i].why, all.said);
        members_stop(&all);
    }
}

static void a_part_comes_once(void **state)
{
    static const int counts[2] = {2, 1};
    struct members all;
    struct peer *peer;
    (void)state;
    members_start_served(&all, counts, 0, NULL);
    forge(&all, 0, &good);
    forge(&all, 0, &good);
    while ((peer = conns_peer(all.ends[0].conns, "ps:0"))) {
        peer_release(peer);
        usleep(1000);
    }
    member_kill(&all.ends[2]);
    assert_non_null(strstr(all.said, "sends a block of 'g' twice"));
    members_stop(&all);
}

/* ---- a hostile server ---- */

struct false_sum {
    int64_t what;
    uint64_t index;
    int64_t elements;
    bool has_memory; /* memory of its own */
    const char *why;
};

/* In place of the server, answers a part with an impossible record. */
static const struct false_sum *to_reply;

static int reply_falsely(struct conns_watcher *watcher, struct peer *peer,
                         const struct record *record, struct error *err)
{
    struct shape shape = shape_vector(to_reply->elements);
    struct named_tensor named = {"", TENSOR_INIT};
    const struct false_sum *f = to_reply;
    (void)watcher, (void)record;
    msgpack_packer *packer = peer_begin(peer, RECORD_REDUCE, 5 + f->has_memory, err);
    if (!packer)
        return 0;
    fill(&named.tensor, FLOAT32, &shape, 0);
    pack_key(packer, "what");
    msgpack_pack_int64(packer, f->what);
    pack_key(packer, "name");
    pack_text(packer, "served");
    pack_key(packer, "step");
    msgpack_pack_int64(packer, 1);
    pack_key(packer, "iteration");
    msgpack_pack_uint64(packer, 0);
    pack_key(packer, "index");
    msgpack_pack_uint64(packer, f->index);
    if (f->has_memory) {
        pack_key(packer, "memory");
        msgpack_pack_true(packer);
    }
    peer_end(peer, &named, 1, err);
    tensor_release(&named.tensor);
    return 0;
}

static void what_a_server_sends_is_checked(void **state)
{
    enum { BLOCK = (int)(CHUNK_BYTES / 4), MORE = 4 };
    static const int counts[2] = {2, 1};
    static const enum collective_kind kind = COLLECTIVE_SUM;
    const struct shape shape = shape_vector(MORE * BLOCK);
    static const struct false_sum cases[] = {
        {REDUCE_PART, 0, BLOCK, false, "a server's record that is no sum"},
        {REDUCE_LEAVE, 0, BLOCK, false, "a server's record that is no sum"},
        {REDUCE_SUM, 0, BLOCK, true, "a server's record that is no sum"},
        {REDUCE_SUM, 0, BLOCK - 1, false, "sends a block of 'served' that it does not have"},
        {REDUCE_SUM, MORE, BLOCK, false, "sends a block of 'served' that it does not have"},
        {REDUCE_SUM, MORE - 1, BLOCK, false, "sends a sum of 'served' that is not its own"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conns_watcher liar = {.reduce = reply_falsely};
        struct members all;
        struct tensor values[MEMBERS_MAX][8];
        struct reply replies[MEMBERS_MAX];
        to_reply = &cases[i];
        members_start_served(&all, counts, 0, NULL);
        conns_watch(all.ends[2].conns, &liar);
        for (int k = 0; k < 2; k++) {
            fill(&values[k][0], FLOAT32, &shape, k);
            struct collective_call call = {.key = {"served", 1, 0},
                                           .values = values[k],
                                           .kinds = &kind,
                                           .n = 1,
                                           .by_servers = true};
            member_call(&all, k, &call, &replies[k]);
        }
        bool told = false;
        for (int k = 0; k < 2; k++) {
            reply_wait(&replies[k]);
            assert_int_equal(replies[k].err.code, ERR_UNAVAILABLE);
            bool finds = strstr(replies[k].err.text, cases[i].why) != NULL;
            if (!finds && !strstr(replies[k].err.text, "ps:0"))
                fail_msg("case %zu: %s", i, replies[k].err.text);
            told |= finds;
            reply_release(&replies[k]);
        }
        if (!told)
            fail_msg("case %zu: nobody says '%s'", i, cases[i].why);
        release_all(&all, values, 1);
        members_stop(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_checked),
        cmocka_unit_test(a_part_comes_once),
        cmocka_unit_test(what_a_server_sends_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
