/* SPDX-License-Identifier: Apache-2.0
 *
 * Two tasks that dial each other at the same moment: one link stays, and it is the same for both.
 */
#include "base/time.h"
#include "lib/links.h"
#include "lib/unit.h"
#include "transport/link/peers_private.h"

#define ROUNDS 300
#define SECONDS 5.0 /* allowed on a busy machine */

static const char *const tasks[] = {"ps:0", "ps:1"};

static void start(struct end *end, const char *task)
{
    struct error err = ERROR_INIT;
    char folder[64];
    end_folder(folder);
    end_start(end, &(struct peers_options){.task = task, .producer = "test", .folder = folder});
    memcpy(end->folder, folder, sizeof folder);
    must(peers_listen(end->peers, "unix:s", &end->at, &err), &err);
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static void count(void *context, struct link *link)
{
    (void)link;
    ++*(int *)context;
}

static bool has_one_link(struct end *end, const char *to)
{
    int n = 0;
    peers_each(end->peers, count, &n);
    return n == 1 && peers_linked(end->peers, to);
}

static bool are_linked(struct end ends[2])
{
    return has_one_link(&ends[0], tasks[1]) && has_one_link(&ends[1], tasks[0]);
}

/* Runs either end at random. Returns whether the links were stable for a while. */
static bool settle(struct end ends[2], uint64_t *random)
{
    double end = time_now() + SECONDS;
    for (int linked = 0; linked < 50 && time_now() < end;) {
        end_pump(&ends[unit_random(random) & 1], never, 0, 0);
        linked = are_linked(ends) ? linked + 1 : 0;
    }
    return time_now() < end;
}

static void one_of_two_links_stays(void **unused)
{
    uint64_t random = 1;
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct end ends[2];
        struct error err = ERROR_INIT;
        for (int i = 0; i < 2; i++)
            start(&ends[i], tasks[i]);
        for (int i = 0; i < 2; i++)
            must(peers_connect(ends[i].peers, tasks[!i], end_address(&ends[!i]), 10, &err), &err);
        if (!settle(ends, &random))
            fail_msg("round %d: they are not linked", round);
        for (int i = 0; i < 2; i++)
            end_stop(&ends[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_of_two_links_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
