/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"
#include "base/time.h"

#include <inttypes.h>
#include <sys/ioctl.h>

#define DRAW_EVERY_SECONDS 0.1
#define RATE_AFTER_SECONDS 0.001 /* earlier, a rate is meaningless */
#define WIDTH_UNKNOWN 80

/* The terminal with an unfinished line. A process draws one line at a time. */
static FILE *line_on;

void progress_start(struct progress *progress, bool shown, FILE *out, const char *unit,
                    int64_t first, int64_t total)
{
    *progress = (struct progress){.unit = unit,
                                  .total = total,
                                  .out = shown ? out : NULL,
                                  .began = time_now(),
                                  .first = first};
}

void progress_format(const struct progress *progress, int64_t done, double seconds,
                     const char *detail, struct str *line)
{
    str_printf(line, "%s %" PRId64, progress->unit, done);
    if (progress->total >= 0)
        str_printf(line, "/%" PRId64, progress->total);
    if (*detail)
        str_printf(line, "  %s", detail);
    int64_t here = done - progress->first;
    if (here <= 0 || seconds < RATE_AFTER_SECONDS)
        return;
    double rate = (double)here / seconds;
    str_printf(line, "  %.*f %ss/s", rate < 10 ? 2 : 0, rate, progress->unit);
    if (progress->total >= done) {
        int64_t left = (int64_t)((double)(progress->total - done) / rate + 0.5);
        if (left >= 3600)
            str_printf(line, "  %" PRId64 ":%02d:%02d left", left / 3600, (int)(left / 60 % 60),
                       (int)(left % 60));
        else
            str_printf(line, "  %" PRId64 ":%02d left", left / 60, (int)(left % 60));
    }
}

/* The last column stays free: a full line would make some terminals scroll. */
static void draw(struct progress *progress, int64_t done, const char *detail)
{
    struct str line = STR_INIT;
    progress_format(progress, done, time_now() - progress->began, detail, &line);
    struct winsize size;
    bool known = !ioctl(fileno(progress->out), TIOCGWINSZ, &size) && size.ws_col > 1;
    size_t width = (known ? size.ws_col : WIDTH_UNKNOWN) - 1;
    fprintf(progress->out, "\r%.*s\033[K", (int)(line.n < width ? line.n : width), str_text(&line));
    fflush(progress->out);
    str_release(&line);
    line_on = progress->out;
    progress->drawn = time_now();
}

void progress_update(struct progress *progress, int64_t done, const char *detail)
{
    if (progress->out && time_now() - progress->drawn >= DRAW_EVERY_SECONDS)
        draw(progress, done, detail);
}

void progress_end(struct progress *progress, int64_t done, const char *detail)
{
    if (!progress->out)
        return;
    draw(progress, done, detail);
    fputc('\n', progress->out);
    fflush(progress->out);
    line_on = NULL;
}

void progress_clear(void)
{
    if (!line_on)
        return;
    fputs("\r\033[K", line_on);
    fflush(line_on);
    line_on = NULL;
}
