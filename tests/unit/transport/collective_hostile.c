/* SPDX-License-Identifier: Apache-2.0
 *
 * A hostile member: false numbers of rows, and chunks that are not its own.
 */
#include "lib/reductions.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"

#define ROW_BYTES 1000
#define MANY 500 /* rows: too many for one contribution */

static int take_nothing(struct conns_watcher *watcher, struct peer *peer,
                        const struct record *record, struct error *err)
{
    (void)watcher;
    (void)peer;
    (void)record;
    (void)err;
    return 0;
}

/* Members but 0 send nothing by themselves. */
struct hostile_pair {
    struct members all;
    struct conns_watcher deaf[MEMBERS_MAX];
    int n; /* of members; 0: 2 */
    struct tensor value;
    struct reply reply;
    enum collective_kind kind;
    enum schedule_kind schedule;
};

static void pair_start(struct hostile_pair *p, enum collective_kind kind)
{
    p->kind = kind;
    members_start_some_shared(&p->all, p->n ? p->n : 2, 0);
    for (int k = 1; k < p->all.n; k++) {
        p->deaf[k] = (struct conns_watcher){.reduce = take_nothing};
        conns_watch(p->all.ends[k].conns, &p->deaf[k]);
    }
}

static void pair_call(struct hostile_pair *p, int64_t rows)
{
    struct shape shape = shape_matrix(rows, ROW_BYTES);
    fill(&p->value, UINT8, &shape, 0);
    struct collective_call call = {.key = {"rows", 1, 0},
                                   .values = &p->value,
                                   .kinds = &p->kind,
                                   .n = 1,
                                   .schedule = {p->schedule, NULL}};
    member_call(&p->all, 0, &call, &p->reply);
}

static void pair_open(struct hostile_pair *p, enum collective_kind kind, int64_t rows)
{
    pair_start(p, kind);
    pair_call(p, rows);
}

static void pair_expect(struct hostile_pair *p, int code, const char *why)
{
    reply_wait(&p->reply);
    if (p->reply.err.code != code || !strstr(p->reply.err.text, why) ||
        strchr(p->reply.err.text, '\n'))
        fail_msg("expected '%s' in %d: %s", why, p->reply.err.code, p->reply.err.text);
    reply_release(&p->reply);
    tensor_release(&p->value);
    members_stop(&p->all);
}

/* The fields of a forged record. */
struct forged {
    enum reduce_what what;
    uint64_t index;
    int from;              /* a member; 0: member 1 */
    const char *rows_text; /* instead of the numbers */
    int n_rows;
    int64_t rows[4];
    int n_tensors;
    int64_t elements; /* of a tensor */
    enum dtype type;  /* 0: that of the value */
};

static uint64_t signature_of(struct hostile_pair *p)
{
    struct process_group *group = (struct process_group *)p->all.ends[0].collective;
    pthread_mutex_lock(&group->lock);
    uint64_t signature = group->rounds ? group->rounds->signature : 0;
    pthread_mutex_unlock(&group->lock);
    return signature;
}

static void pack_rows(msgpack_packer *packer, const struct forged *f)
{
    pack_key(packer, "rows");
    if (f->rows_text) {
        pack_text(packer, f->rows_text);
    } else {
        msgpack_pack_array(packer, (size_t)f->n_rows);
        for (int i = 0; i < f->n_rows; i++)
            msgpack_pack_int64(packer, f->rows[i]);
    }
}

static void forge(struct hostile_pair *p, const struct forged *f)
{
    struct error ignored = ERROR_INIT;
    struct process_group *group =
        (struct process_group *)p->all.ends[f->from ? f->from : 1].collective;
    struct shape shape = shape_vector(f->elements);
    struct named_tensor tensors[2];
    bool says_rows = f->rows_text || f->n_rows;
    msgpack_packer *packer =
        peer_begin(group->ends[0].peer, RECORD_REDUCE, 5 + says_rows, &ignored);
    if (!packer)
        return; /* it was disconnected already */
    pack_key(packer, "what");
    msgpack_pack_int(packer, f->what);
    pack_key(packer, "name");
    pack_text(packer, "rows");
    pack_key(packer, "step");
    msgpack_pack_int64(packer, 1);
    pack_key(packer, "iteration");
    msgpack_pack_uint64(packer, 0);
    pack_key(packer, "index");
    msgpack_pack_uint64(packer, f->what == REDUCE_BRING ? signature_of(p) : f->index);
    if (says_rows)
        pack_rows(packer, f);
    for (int i = 0; i < f->n_tensors; i++) {
        tensors[i].name = "";
        fill(&tensors[i].tensor, f->type ? f->type : UINT8, &shape, 1);
    }
    peer_end(group->ends[0].peer, tensors, f->n_tensors, &ignored);
    for (int i = 0; i < f->n_tensors; i++)
        tensor_release(&tensors[i].tensor);
}

static void what_is_said_of_rows_is_checked(void **state)
{
    static const struct {
        struct forged bring;
        int code;
        const char *why;
    } cases[] = {
        {{.n_tensors = 1, .elements = 3000}, ERR_PROTOCOL, "does not say how many rows it brings"},
        {{.n_rows = 4, .rows = {3, 0, 3, 0}}, ERR_PROTOCOL, "does not say how many rows it brings"},
        {{.n_rows = 2, .rows = {3, 0}}, ERR_PROTOCOL, "brings too little"},
        {{.n_rows = 2, .rows = {3, 0}, .n_tensors = 1, .elements = 2999},
         ERR_PROTOCOL,
         "worker:1 brings other rows than it says"},
        {{.n_rows = 2, .rows = {3, 0}, .n_tensors = 1, .elements = 3000, .type = INT8},
         ERR_PROTOCOL,
         "worker:1 brings other rows than it says"},
        {{.n_rows = 2, .rows = {-1, 0}}, ERR_UNAVAILABLE, "how many rows it has, and how not"},
        {{.n_rows = 2, .rows = {INT64_MAX, 0}}, ERR_UNAVAILABLE, "how many rows it has"},
        {{.rows_text = "many"}, ERR_UNAVAILABLE, "how many rows it has, and how not"},
        {{.n_rows = 2, .rows = {(int64_t)1 << 46, 0}}, ERR_OS, "no memory for tensor uint8["},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hostile_pair p = {.schedule = SCHEDULE_DIRECT};
        pair_open(&p, COLLECTIVE_ROWS, 3);
        forge(&p, &cases[i].bring);
        pair_expect(&p, cases[i].code, cases[i].why);
    }
}

static const struct forged many = {.what = REDUCE_BRING, .n_rows = 2, .rows = {MANY, 0}};

/* 500 rows of each, of one kind: chunk 0 of member 0, 1 of member 1, ... of 262144 bytes. */
static void check_blocks(enum collective_kind kind, const struct forged *records, int n,
                         const char *why)
{
    struct hostile_pair p = {.schedule = SCHEDULE_DIRECT};
    pair_open(&p, kind, MANY);
    forge(&p, &many);
    for (int i = 0; i < n; i++)
        forge(&p, &records[i]);
    pair_expect(&p, ERR_UNAVAILABLE, why);
}

/* In a ring, 500 rows are four chunks: 0 and 2 go to member 1, which adds them, 1 and 3 come from
 * it. */
static void check_scheduled(const struct forged *records, int n, const char *why)
{
    struct hostile_pair p = {.schedule = SCHEDULE_RING};
    const struct forged bring = {.what = REDUCE_BRING};
    pair_open(&p, COLLECTIVE_SUM, MANY);
    forge(&p, &bring);
    for (int i = 0; i < n; i++)
        forge(&p, &records[i]);
    pair_expect(&p, ERR_UNAVAILABLE, why);
}

static void blocks_by_a_schedule_are_checked(void **state)
{
    enum { FULL = 65536, REST = 53392 };
    const struct forged sum = {REDUCE_SUM, .index = 0, .n_tensors = 1, .elements = FULL};
    const struct forged part = {REDUCE_PART, .index = 1, .n_tensors = 1, .elements = FULL};
    const struct forged last = {REDUCE_PART, .index = 7, .n_tensors = 1, .elements = REST};
    const struct forged parts[] = {part, last, part};
    const struct forged sums[] = {sum, sum};
    const struct forged not_added = {REDUCE_PART, .index = 0, .n_tensors = 1, .elements = FULL};
    const struct forged own = {REDUCE_SUM, .index = 1, .n_tensors = 1, .elements = FULL};
    const struct forged after[] = {part, own};
    const struct forged beyond = {REDUCE_PART, .index = 8, .n_tensors = 1, .elements = FULL};
    const struct forged shorter = {REDUCE_PART, .index = 7, .n_tensors = 1, .elements = FULL};
    const struct forged ints = {REDUCE_PART, .index = 1, .n_tensors = 1, .elements = FULL,
                                .type = INT8};
    const struct forged there = {REDUCE_SUM, .index = 0};
    const char *not_there = "sends a block of 'rows' that it does not have";
    const char *not_own = "sends a sum of 'rows' that is not its own";
    (void)state;
    check_scheduled(parts, 3, "sends a block of 'rows' twice");
    check_scheduled(sums, 2, not_own);
    check_scheduled(&not_added, 1, "sends a block of 'rows' twice");
    check_scheduled(&own, 1, not_own);
    check_scheduled(after, 2, not_own);
    check_scheduled(&beyond, 1, not_there);
    check_scheduled(&shorter, 1, not_there);
    check_scheduled(&ints, 1, not_there);
    check_scheduled(&there, 1, not_there);
}

static void blocks_of_rows_are_checked(void **state)
{
    enum { FULL = 262144, PART = 250000 };
    const struct forged own = {REDUCE_SUM, .index = 1, .n_tensors = 1, .elements = FULL};
    const struct forged twice[] = {own, own};
    const struct forged beyond = {REDUCE_SUM, .index = 4, .n_tensors = 1, .elements = FULL};
    const struct forged far = {REDUCE_SUM, .index = UINT64_MAX, .n_tensors = 1, .elements = FULL};
    const struct forged others = {REDUCE_SUM, .index = 0, .n_tensors = 1, .elements = FULL};
    const struct forged shorter = {REDUCE_SUM, .index = 1, .n_tensors = 1, .elements = FULL - 1};
    const struct forged floats = {REDUCE_SUM, .index = 1, .n_tensors = 1, .elements = FULL,
                                  .type = INT8};
    const struct forged none = {REDUCE_SUM, .index = 1};
    const struct forged both = {REDUCE_SUM, .index = 1, .n_tensors = 2, .elements = FULL};
    const struct forged part = {REDUCE_PART, .index = 1, .n_tensors = 1, .elements = FULL};
    const char *not_there = "sends a block of 'rows' that it does not have";
    const char *not_own = "sends a sum of 'rows' that is not its own";
    (void)state;
    check_blocks(COLLECTIVE_ROWS, twice, 2, not_own);
    check_blocks(COLLECTIVE_ROWS, &beyond, 1, not_there);
    check_blocks(COLLECTIVE_ROWS, &far, 1, not_there);
    check_blocks(COLLECTIVE_ROWS, &others, 1, not_own);
    check_blocks(COLLECTIVE_ROWS, &shorter, 1, not_there);
    check_blocks(COLLECTIVE_ROWS, &floats, 1, not_there);
    check_blocks(COLLECTIVE_ROWS, &none, 1, not_there);
    check_blocks(COLLECTIVE_ROWS, &both, 1, not_there);
    check_blocks(COLLECTIVE_ROWS, &part, 1, "sends a block of 'rows' twice");
    /* 250 rows from 0 to 1, and 250 from 1 to 0. */
    const struct forged to_itself = {REDUCE_SUM, .index = 0, .n_tensors = 1, .elements = PART};
    check_blocks(COLLECTIVE_PART, &to_itself, 1, not_own);
}

/* Sums that stay with their owners: member 0 has the sum of chunk 0, member 1 that of chunk 1. */
static void blocks_of_sums_that_stay_are_checked(void **state)
{
    enum { PART = 250000 };
    const struct forged part = {REDUCE_PART, .index = 0, .n_tensors = 1, .elements = PART};
    const struct forged twice[] = {part, part};
    const struct forged not_his = {REDUCE_PART, .index = 1, .n_tensors = 1, .elements = PART};
    const struct forged with_data = {REDUCE_SUM, .index = 1, .n_tensors = 1, .elements = PART};
    const struct forged foreign = {REDUCE_SUM, .index = 0};
    const struct forged sum = {REDUCE_SUM, .index = 1};
    const struct forged sums[] = {sum, sum};
    const char *not_own = "sends a sum of 'rows' that is not its own";
    const char *not_there = "sends a block of 'rows' that it does not have";
    (void)state;
    check_blocks(COLLECTIVE_SUM_PART, twice, 2, "sends a block of 'rows' twice");
    check_blocks(COLLECTIVE_SUM_PART, &not_his, 1, "sends a block of 'rows' twice");
    check_blocks(COLLECTIVE_SUM_PART, &with_data, 1, not_there);
    check_blocks(COLLECTIVE_SUM_PART, &foreign, 1, not_own);
    check_blocks(COLLECTIVE_SUM_PART, sums, 2, not_own);
}

/* Before a member's contribution has come, its chunks are unknown. */
static void blocks_come_when_all_are_known(void **state)
{
    const struct forged early = {REDUCE_SUM, .index = 1, .n_tensors = 1, .elements = 262144};
    struct hostile_pair p = {.schedule = SCHEDULE_DIRECT};
    (void)state;
    pair_open(&p, COLLECTIVE_ROWS, MANY);
    forge(&p, &early);
    pair_expect(&p, ERR_UNAVAILABLE, "sends a block of 'rows' that it does not have");
}

/* A chunk that comes before this member has heard from all is checked once it has. */
static void blocks_that_come_early_are_checked(void **state)
{
    enum { FULL = 262144 };
    const struct forged of_2 = {.what = REDUCE_BRING, .from = 2, .n_rows = 2, .rows = {MANY, 0}};
    const struct forged own = {REDUCE_SUM, .index = 1, .n_tensors = 1, .elements = FULL};
    const struct forged others = {REDUCE_SUM, .index = 2, .n_tensors = 1, .elements = FULL};
    const struct forged beyond = {REDUCE_SUM, .index = 6, .n_tensors = 1, .elements = FULL};
    const struct forged both = {REDUCE_SUM, .index = 1, .n_tensors = 2, .elements = FULL};
    const struct forged small = {REDUCE_SUM, .index = 1, .n_tensors = 2, .elements = 16};
    const struct forged none = {REDUCE_SUM, .index = 1};
    const struct forged *const cases[] = {&others, &beyond, &both, &small, &none};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hostile_pair p = {.schedule = SCHEDULE_DIRECT, .n = 3};
        pair_open(&p, COLLECTIVE_ROWS, MANY);
        forge(&p, &many);
        forge(&p, &own);
        forge(&p, cases[i]);
        usleep(50000); /* mostly they come before the other member's rows are known */
        forge(&p, &of_2);
        pair_expect(&p, ERR_UNAVAILABLE,
                    cases[i] == &others ? "sends a sum of 'rows' that is not its own"
                                        : "sends a block of 'rows' that it does not have");
    }
}

/* No member can have heard from all before this one has called; its call then fails. */
static void what_comes_before_the_call_is_refused(void **state)
{
    static const struct {
        struct forged record;
        const char *why;
    } cases[] = {
        {{REDUCE_PART, .n_tensors = 1, .elements = 65536}, "a block of 'rows' that it does not"},
        {{REDUCE_SUM, .n_tensors = 1, .elements = 65536}, "a block of 'rows' that it does not"},
        {{.what = REDUCE_BRING}, "comes to 'rows' twice"},
    };
    const struct forged bring = {.what = REDUCE_BRING};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hostile_pair p = {.schedule = SCHEDULE_RING};
        struct peer *peer;
        pair_start(&p, COLLECTIVE_SUM);
        while (!(peer = conns_peer(p.all.ends[0].conns, p.all.tasks[1]))) /* the link is there */
            usleep(1000);
        peer_release(peer);
        forge(&p, &bring);
        forge(&p, &cases[i].record);
        while ((peer = conns_peer(p.all.ends[0].conns, p.all.tasks[1]))) { /* the link ends */
            peer_release(peer);
            usleep(1000);
        }
        pair_call(&p, MANY);
        pair_expect(&p, ERR_UNAVAILABLE, cases[i].why);
    }
}

/* If a member hears nothing of the others' rows, it stops after the window and one chunk of its
 * own. */
static void nobody_runs_ahead(void **state)
{
    enum { ROWS = 12000, MOST = WINDOW_BYTES + 2 * CHUNK_BYTES };
    const struct forged bring = {.what = REDUCE_BRING, .n_rows = 2, .rows = {ROWS, 0}};
    struct hostile_pair p = {.schedule = SCHEDULE_DIRECT};
    uint64_t sent = 0;
    (void)state;
    pair_open(&p, COLLECTIVE_ROWS, ROWS);
    struct link *link = peers_find(conns_peers(p.all.ends[0].conns), p.all.tasks[1]);
    forge(&p, &bring);
    for (int i = 0; i < 200 && sent < MOST / 2; i++) {
        usleep(10000);
        sent = link_stats(link).bytes_out;
    }
    usleep(100000);
    sent = link_stats(link).bytes_out;
    link_release(link);
    assert_true(sent > WINDOW_BYTES / 2 && sent < MOST);
    member_kill(&p.all.ends[1]);
    pair_expect(&p, ERR_UNAVAILABLE, "worker:1");
}

/* A sum's rows must agree; absurd rows for another member are for that member to refuse. */
static void absurd_numbers_of_rows_do_no_harm(void **state)
{
    static const enum collective_kind kinds[] = {COLLECTIVE_SUM, COLLECTIVE_SUM_PART,
                                                 COLLECTIVE_PART, COLLECTIVE_ROWS};
    static const int codes[] = {ERR_DATA, ERR_DATA, ERR_DATA, 0};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const int64_t absurd = (int64_t)1 << 46;
        struct process_group group = {.interface = {.size = 3}};
        struct shape shape = shape_matrix(3, ROW_BYTES);
        struct tensor own, result = TENSOR_INIT;
        int members[3] = {0, 1, 2};
        uint64_t rows[2] = {(uint64_t)absurd, 0}, honest[2] = {3, 0};
        struct tensor none; /* member 2's rows, which are for the root */
        struct round_contribution contributions[3] = {
            {.here = false},
            {.rows = rows, .n_rows = 2},
            {.rows = honest, .n_rows = 2, .values = &none, .n = 1}};
        struct error err = ERROR_INIT;
        int refused;
        honest[0] = kinds[i] == COLLECTIVE_SUM ? 1 : 3;
        bool has_root = kinds[i] == COLLECTIVE_SUM || kinds[i] == COLLECTIVE_ROWS;
        char name[] = "rows";
        struct group_end ends[3] = {
            {.task = "worker:0"}, {.task = "worker:1"}, {.task = "worker:2"}};
        fill(&own, UINT8, &shape, 0);
        group.ends = ends;
        group.memory = buffer_pool_new(0);
        pthread_mutex_init(&group.lock, NULL);
        struct collective_round round = {.name = name,
                                         .call = {.n = 1, .has_root = has_root, .root = 2},
                                         .kinds = (enum collective_kind[]){kinds[i]},
                                         .own = &own,
                                         .results = &result,
                                         .contributions = contributions,
                                         .members = members,
                                         .n_members = 3};
        rows_call(&group, &round);
        none = tensor_piece(&own, 0, 0);
        int code = contributions_combine(&group, &round, &err);
        assert_int_equal(code, codes[i]);
        assert_true(code || !chunks_run(&group, &round, &refused, &err));
        assert_true(!round.chunks.n);
        mem_free(round.routed);
        mem_free(round.counts);
        tensor_release(&result);
        tensor_release(&own);
        buffer_pool_free(group.memory);
        pthread_mutex_destroy(&group.lock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_of_rows_is_checked),
        cmocka_unit_test(blocks_of_rows_are_checked),
        cmocka_unit_test(blocks_by_a_schedule_are_checked),
        cmocka_unit_test(blocks_of_sums_that_stay_are_checked),
        cmocka_unit_test(nobody_runs_ahead),
        cmocka_unit_test(absurd_numbers_of_rows_do_no_harm),
        cmocka_unit_test(blocks_come_when_all_are_known),
        cmocka_unit_test(blocks_that_come_early_are_checked),
        cmocka_unit_test(what_comes_before_the_call_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
