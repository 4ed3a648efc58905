/* SPDX-License-Identifier: Apache-2.0 */
#include "base/patience.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/time.h"

#define LINE_BYTES 1024
#define FIRST_SECONDS 1.0  /* until the first line */
#define PAUSE_MAX 60.0     /* longest time between two lines; each is twice the one before */
#define ASKED_SECONDS 10.0 /* of a wait that begins after the process was asked to end */
#define LOCK_SECONDS 30.0  /* for a lock that is held briefly */

static struct patience_handler handler;

void patience_set_handler(const struct patience_handler *wanted)
{
    handler = *wanted;
}

static bool is_asked(void)
{
    return handler.asked && handler.asked(handler.context);
}

struct patience patience_begin(double seconds, const atomic_bool *cancelled)
{
    double now = time_now();
    bool was_asked = is_asked();
    if (was_asked && (seconds < 0 || seconds > ASKED_SECONDS))
        seconds = ASKED_SECONDS;
    return (struct patience){.seconds = seconds,
                             .until = seconds < 0 ? INFINITY : now + seconds,
                             .tell_at = now + FIRST_SECONDS,
                             .pause = FIRST_SECONDS,
                             .was_asked = was_asked,
                             .cancelled = cancelled};
}

enum patience_news patience_look(struct patience *patience)
{
    double now = time_now();
    if ((patience->cancelled && atomic_load(patience->cancelled)) ||
        (!patience->was_asked && is_asked()))
        return PATIENCE_ENDS;
    if (now >= patience->until)
        return PATIENCE_OVER;
    return now >= patience->tell_at ? PATIENCE_TELL : PATIENCE_WAIT;
}

void patience_tell(struct patience *patience, const char *format, ...)
{
    char line[LINE_BYTES];
    double now = time_now();
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > 0 && n < LINE_BYTES && isfinite(patience->until))
        snprintf(line + n, sizeof line - (size_t)n, ", %.0f s left", patience->until - now);
    patience->pause = fmin(2 * patience->pause, PAUSE_MAX);
    patience->tell_at = now + patience->pause;
    if (handler.say)
        handler.say(handler.context, line);
}

int patience_lock(int fd, const char *what, struct error *err)
{
    const struct timespec look_again = {.tv_nsec = 10000000};
    struct patience patience = patience_begin(LOCK_SECONDS, NULL);
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_set_errno(err, ERR_OS, "%s", what);
        enum patience_news news = patience_look(&patience);
        if (news == PATIENCE_OVER)
            return error_set(err, ERR_RETRY, "%s: another process has held its lock for %.0f s",
                             what, patience.seconds);
        if (news == PATIENCE_ENDS)
            return error_set(err, ERR_CANCELLED, "%s: interrupted while waiting for its lock",
                             what);
        if (news == PATIENCE_TELL)
            patience_tell(&patience, "waiting for the lock of %s, held by another process", what);
        nanosleep(&look_again, NULL);
    }
    return 0;
}
