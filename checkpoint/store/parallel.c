/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/parallel.h"
#include "base/cores.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS_MAX 4

struct team {
    uint64_t n;
    int (*work)(void *context, uint64_t i, struct error *err);
    void *context;
    atomic_uint_fast64_t next;
    atomic_int failed;
    pthread_mutex_t lock;
    struct error *err;
};

static void *run(void *argument)
{
    struct team *team = argument;
    while (!atomic_load(&team->failed)) {
        uint64_t i = atomic_fetch_add(&team->next, 1);
        struct error err = ERROR_INIT;
        if (i >= team->n)
            break;
        if (!team->work(team->context, i, &err))
            continue;
        pthread_mutex_lock(&team->lock);
        if (!atomic_exchange(&team->failed, 1))
            *team->err = err;
        pthread_mutex_unlock(&team->lock);
    }
    return NULL;
}

int checkpoint_parallel(int threads, uint64_t n,
                        int (*work)(void *context, uint64_t i, struct error *err), void *context,
                        struct error *err)
{
    struct team team = {
        .n = n, .work = work, .context = context, .lock = PTHREAD_MUTEX_INITIALIZER, .err = err};
    pthread_t others[THREADS_MAX];
    int wanted = threads > 0 ? threads : cores_usable();
    int helpers = 0;
    while (helpers < THREADS_MAX - 1 && helpers < wanted - 1 && (uint64_t)helpers + 1 < n &&
           !thread_start(&others[helpers], run, &team))
        helpers++;
    run(&team);
    for (int i = 0; i < helpers; i++)
        pthread_join(others[i], NULL);
    return team.failed ? err->code : 0;
}
