/* SPDX-License-Identifier: Apache-2.0
 *
 * One batch goes back and forth between the thread and who runs steps. The thread works on it from
 * when it is asked until it says that it is done, by a byte in a pipe, for which the other waits as
 * a reader waits for input; so signals end that wait.
 */
#include "exec/session/feed_ahead.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "exec/session/feeding.h"

struct feed_ahead {
    struct driver *driver;
    pthread_t thread;
    pthread_mutex_t lock; /* guards `is_asked` and `is_stopped` */
    pthread_cond_t changed;
    bool is_asked; /* the batch is the thread's, until there is a byte in `done` */
    bool is_stopped;
    int done[2], stop[2]; /* pipes */
    bool is_under_way;    /* who runs steps has asked, and has not taken */

    /* the batch */
    struct feeds feeds;
    struct staged_batch *staged;
    struct record record;
    int64_t step;
    bool more;
    struct error err;
};

/* ---- the thread ---- */

/* Before the reader blocks: until there is input, or nobody wants any. */
static int wait_for_input(void *context, struct error *err)
{
    struct feed_ahead *ahead = context;
    struct pollfd fds[] = {
        {.fd = stream_reader_fd(ahead->driver->feed_reader), .events = POLLIN},
        {.fd = ahead->stop[0], .events = POLLIN},
    };
    while (fds[0].fd >= 0 && poll(fds, 2, -1) < 0)
        ;
    return fds[1].revents ? error_set(err, ERR_CANCELLED, "no more feeds are wanted") : 0;
}

static struct staged_feeds fed(const struct feeds *feeds)
{
    return (struct staged_feeds){feeds->edges.items, feeds->values.items, (int)feeds->edges.n};
}

static void *read_ahead(void *context)
{
    struct feed_ahead *ahead = context;
    for (;;) {
        pthread_mutex_lock(&ahead->lock);
        while (!ahead->is_asked && !ahead->is_stopped)
            pthread_cond_wait(&ahead->changed, &ahead->lock);
        ahead->is_asked = false;
        bool is_stopped = ahead->is_stopped;
        pthread_mutex_unlock(&ahead->lock);
        if (is_stopped)
            return NULL;
        struct step_feeding feeding = {&ahead->feeds, &ahead->record, ahead->step, true};
        feeds_clear(&ahead->feeds);
        error_clear(&ahead->err);
        feeding_read(ahead->driver, &feeding, &ahead->more, &ahead->err);
        struct staged_feeds feeds = fed(&ahead->feeds);
        if (!ahead->err.code && ahead->more)
            staged_fill(ahead->staged, &feeds);
        BUG_ON(write(ahead->done[1], "", 1) != 1); /* an empty pipe takes a byte */
    }
}

/* ---- who runs steps ---- */

/* Those that are open. */
static void close_pipes(struct feed_ahead *ahead)
{
    int *fds[] = {&ahead->done[0], &ahead->done[1], &ahead->stop[0], &ahead->stop[1]};
    for (int i = 0; i < 4; i++)
        if (*fds[i] >= 0)
            close(*fds[i]);
}

static void release(struct feed_ahead *ahead)
{
    staged_free(ahead->staged);
    feeds_release(&ahead->feeds);
    record_release(&ahead->record);
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->changed);
    mem_free(ahead);
}

struct feed_ahead *feed_ahead_new(struct driver *driver)
{
    struct feed_ahead *ahead = mem_alloc(sizeof *ahead);
    ahead->driver = driver;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    ahead->staged = staged_new(driver->stage);
    feeds_share_constants(&ahead->feeds, &driver->feeds);
    for (int i = 0; i < 2; i++)
        ahead->done[i] = ahead->stop[i] = -1;
    if (!pipe2(ahead->done, O_CLOEXEC) && !pipe2(ahead->stop, O_CLOEXEC) &&
        !thread_start(&ahead->thread, read_ahead, ahead)) {
        stream_reader_on_wait(driver->feed_reader, wait_for_input, ahead);
        return ahead;
    }
    close_pipes(ahead);
    release(ahead);
    return NULL;
}

void feed_ahead_free(struct feed_ahead *ahead)
{
    if (!ahead)
        return;
    stage_stop(ahead->driver->stage);
    pthread_mutex_lock(&ahead->lock);
    ahead->is_stopped = true;
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    BUG_ON(write(ahead->stop[1], "", 1) != 1);
    pthread_join(ahead->thread, NULL);
    close_pipes(ahead);
    release(ahead);
}

/* For the step with that number; those of the driver are as large, perhaps. */
static void ask(struct feed_ahead *ahead, int64_t step)
{
    struct staged_feeds like = fed(&ahead->driver->feeds);
    staged_reserve(ahead->staged, &like);
    ahead->step = step;
    ahead->is_under_way = true;
    pthread_mutex_lock(&ahead->lock);
    ahead->is_asked = true;
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

int feed_ahead_next(struct feed_ahead *ahead, bool *more, struct error *err)
{
    struct driver *driver = ahead->driver;
    struct pollfd done = {.fd = ahead->done[0], .events = POLLIN};
    char byte;
    if (!ahead->is_under_way)
        ask(ahead, driver->step + 1);
    if (driver->await_feeds && driver->await_feeds(driver->await_context, done.fd, err))
        return err->code;
    while (poll(&done, 1, -1) < 0)
        ;
    BUG_ON(read(done.fd, &byte, 1) != 1);
    ahead->is_under_way = false;
    struct feeds feeds = driver->feeds; /* the batches change places */
    struct staged_batch *staged = driver->staged;
    driver->feeds = ahead->feeds;
    driver->staged = ahead->staged;
    ahead->feeds = feeds;
    ahead->staged = staged;
    *more = ahead->more;
    if (ahead->err.code) {
        *err = ahead->err;
        return err->code;
    }
    driver_begin_staged(driver); /* what is staged next comes behind the step */
    if (*more && (driver->steps_fed < 0 || driver->step + 1 < driver->steps_fed))
        ask(ahead, driver->step + 2);
    return 0;
}
