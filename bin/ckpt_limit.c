/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/ckpt_limit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "checkpoint/command/text.h"
#include "cli/output.h"

#define GRACE_SECONDS 0.5 /* for a verb that checks the time itself: its message is better */

static struct {
    struct ckpt_limit limit;
    struct timespec began, end; /* CLOCK_MONOTONIC */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool runs, is_over; /* guarded by the lock */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *wait_for_end(void *context)
{
    int status = 0;
    (void)context;
    pthread_mutex_lock(&watch.lock);
    while (!watch.is_over && !status)
        status = pthread_cond_timedwait(&watch.ended, &watch.lock, &watch.end);
    if (!watch.is_over) {
        /* The lock is held, so that the process cannot meanwhile end as if in time. To end here is
         * safe: a store is whole whenever its writer ends, and only complete files have names. */
        output_unlink_all();
        if (watch.limit.metrics_path) {
            /* Calls no function that may wait for a lock which the stalled thread holds. */
            struct timespec now, end;
            struct str text = STR_INIT;
            clock_gettime(CLOCK_REALTIME, &now);
            clock_gettime(CLOCK_MONOTONIC, &end);
            const struct text_metrics metrics = {
                .verb = watch.limit.verb,
                .store = watch.limit.store,
                .status = EX_TEMPFAIL,
                .time = (int64_t)now.tv_sec * 1000000,
                .seconds = (double)(end.tv_sec - watch.began.tv_sec) +
                           1e-9 * (double)(end.tv_nsec - watch.began.tv_nsec),
                .newest = -1,
                .problems = -1};
            text_metrics(&text, &metrics);
            /* The figures go to a temporary file, which is renamed once it is complete; what is no
             * regular file is written directly. */
            const char *path = watch.limit.metrics_path;
            struct stat old;
            struct str temporary = STR_INIT;
            bool is_special = !stat(path, &old) && !S_ISREG(old.st_mode);
            str_printf(&temporary, "%s.%ld.tmp", path, (long)getpid());
            int fd = is_special ? open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
                                : open(str_text(&temporary),
                                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            bool written = fd >= 0 && write(fd, text.data, text.n) == (ssize_t)text.n;
            written = fd >= 0 && !close(fd) && written;
            if (fd >= 0 && !is_special && (!written || rename(str_text(&temporary), path)))
                unlink(str_text(&temporary));
            str_release(&temporary);
            str_release(&text);
        }
        fprintf(stderr, "tf-ckpt: %s: %s: stopped, as --max-runtime is over\n", watch.limit.store,
                watch.limit.verb);
        _exit(EX_TEMPFAIL);
    }
    pthread_mutex_unlock(&watch.lock);
    return NULL;
}

int ckpt_limit_start(const struct ckpt_limit *limit, struct error *err)
{
    double end = limit->seconds + GRACE_SECONDS;
    pthread_condattr_t monotonic;
    watch.limit = *limit;
    clock_gettime(CLOCK_MONOTONIC, &watch.began);
    watch.end = watch.began;
    end += 1e-9 * (double)watch.end.tv_nsec;
    watch.end.tv_sec += (time_t)end;
    watch.end.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch.ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    watch.runs = !thread_start(&watch.thread, wait_for_end, NULL);
    return watch.runs ? 0 : error_set(err, ERR_OS, "no thread for --max-runtime");
}

void ckpt_limit_end(void)
{
    if (!watch.runs)
        return;
    pthread_mutex_lock(&watch.lock);
    watch.is_over = true;
    pthread_cond_signal(&watch.ended);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    watch.runs = false;
}
