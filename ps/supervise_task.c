/* SPDX-License-Identifier: Apache-2.0
 *
 * One task: its files, its feed command, its beginning and its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "ps/supervise_private.h"

#define FEEDER_SECONDS 1.0 /* a feed command has to end in, once it is told to */
#define BRIEF_SECONDS 3.0  /* who lives less long lacks something */
#define TAIL_BYTES 4096

bool task_is_busy(const struct task *task)
{
    return task->main.pid || task->feeder.pid;
}

/* ---- beginning ---- */

/* What an earlier process fetched stays: worker-0.rec becomes worker-0.1.rec, if the first start
 * wrote it, and worker-0.0.rec if that was another job. */
static void keep_output(const struct task *task)
{
    struct stat status;
    struct str kept = STR_INIT;
    const char *dot = strrchr(task->output, '.');
    if (stat(task->output, &status) || !status.st_size || !S_ISREG(status.st_mode))
        return;
    if (!dot || strchr(dot, '/'))
        dot = task->output + strlen(task->output);
    str_append_bytes(&kept, task->output, (size_t)(dot - task->output));
    str_printf(&kept, ".%d%s", task->starts, dot);
    rename(task->output, kept.data);
    str_release(&kept);
}

static int open_for(const char *path, int flags)
{
    return path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666) : -1;
}

/* What a command line may ask: is it the first start, another one of this task alone, or of all? */
static const char *how(const struct supervisor *s, const struct task *task)
{
    return task->generations ? "JOB_HOW=again" : s->generation ? "JOB_HOW=anew" : "JOB_HOW=first";
}

/* The pipe's writing end stays open here, too: the task sees the end of its stdin only when the
 * supervisor knows that the feed command has ended well. */
static int start_feeder(struct supervisor *s, struct task *task, int errors, int *input)
{
    char start[32], kind[72];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    snprintf(start, sizeof start, "JOB_START=%d", task->starts);
    snprintf(kind, sizeof kind, "%s/feed", task->name);
    struct spawn spawn = {.line = task->feed,
                          .kind = kind,
                          .in = -1,
                          .out = ends[1],
                          .err = errors,
                          .extra = {start, how(s, task)}};
    *input = ends[0];
    task->input = ends[1];
    return spawn_shell(s, &task->feeder, &spawn);
}

void task_start(struct supervisor *s, struct task *task)
{
    char start[32];
    int input = -1;
    struct stat status;
    snprintf(start, sizeof start, "JOB_START=%d", task->starts);
    if (task->output)
        keep_output(task);
    if (!task->starts && task->errors && !stat(task->errors, &status))
        task->repeated = status.st_size; /* an earlier job's */
    int output = open_for(task->output, O_TRUNC), errors = open_for(task->errors, O_APPEND);
    struct spawn spawn = {.line = task->command,
                          .kind = task->name,
                          .out = output,
                          .err = errors,
                          .holds_lifeline = true,
                          .extra = {start, how(s, task)}};
    if (!task->absent_now)
        task->asked = time_now();
    bool failed = task->feed && start_feeder(s, task, errors, &input);
    spawn.in = input;
    failed = failed || spawn_shell(s, &task->main, &spawn);
    if (failed)
        say(s, "%s cannot be started: %s", task->name, strerror(errno));
    const int ours[] = {input, output, errors};
    for (int i = 0; i < 3; i++)
        if (ours[i] >= 0)
            close(ours[i]);
    task->starts++;
    task->generations++;
    task->start_at = 0;
    task->died = task->done = task->ready = task->told_to_end = task->absent_now = false;
    task->why[0] = task->ended[0] = task->told[0] = '\0';
    task->unheard_at = 0;
    if (failed) /* as if it had ended for want of processes */
        task_ended(s, task, ERR_OS);
    else
        task->pid = task->main.pid;
}

/* ---- ending ---- */

static void end_input(struct task *task)
{
    if (task->input >= 0)
        close(task->input);
    task->input = -1;
}

static void end_feeder(struct task *task)
{
    if (!task->feeder.pid || task->feeder.kill_at)
        return;
    process_signal(&task->feeder, SIGTERM);
    process_signal(&task->feeder, SIGCONT);
    task->feeder.kill_at = time_now() + FEEDER_SECONDS;
}

/* One whose stdin is held, such as an ssh, ends in good order when that ends. */
void task_tell_to_end(struct task *task)
{
    task->start_at = 0;
    if (!task->main.pid || task->told_to_end)
        return;
    task->told_to_end = true;
    if (task->hold) {
        end_feeder(task);
        end_input(task);
    } else {
        kill(task->main.pid, SIGTERM);
    }
}

void task_kill(struct task *task)
{
    task->start_at = 0;
    process_signal(&task->main, SIGKILL);
    process_signal(&task->feeder, SIGKILL);
    if (task->feeder.pid)
        task->feeder.kill_at = time_now();
}

static bool was_killed(int status)
{
    return status > 128 && status != 128 + SIGPIPE && status < 255;
}

/* What a killed command has written is no feed: the task must not take it for one. */
void feeder_ended(struct supervisor *s, struct task *task, int status)
{
    bool lost = was_killed(status) || (task->hold && status);
    if (!task->main.pid || task->feeder.kill_at) {
        end_input(task);
    } else if (lost && !s->why && s->phase == PHASE_RUN) {
        snprintf(task->why, sizeof task->why, "lost its feed command (exit %d)", status);
        if (was_killed(status))
            snprintf(task->why, sizeof task->why, "lost its feed command (killed by signal %d)",
                     status - 128);
        process_signal(&task->main, SIGKILL);
    } else if (!task->hold) {
        end_input(task);
    }
}

static void note_end(struct task *task, int status)
{
    task->code = status;
    task->ready = false;
    task->brief = time_now() - task->main.since < BRIEF_SECONDS ? task->brief + 1 : 0;
    if (!status)
        snprintf(task->ended, sizeof task->ended, "done");
    else if (status > 128 && status < 255)
        snprintf(task->ended, sizeof task->ended, "killed by signal %d", status - 128);
    else
        snprintf(task->ended, sizeof task->ended, "exit %d", status);
}

/* Nobody answers where it is to run: that may change. */
static bool is_tried_again(const struct supervisor *s, struct task *task)
{
    double now = time_now();
    if (!task->absent || task->code != task->absent)
        return false;
    task->code = ERR_UNAVAILABLE;
    task->absent_now = now < task->asked + s->timeout;
    if (task->absent_now) {
        task->start_at = now + 1;
        task->generations--; /* it was not there, so the next one is no other start */
    }
    return task->absent_now;
}

void task_ended(struct supervisor *s, struct task *task, int status)
{
    end_feeder(task);
    end_input(task);
    note_end(task, status);
    if (s->phase == PHASE_RESET || s->phase == PHASE_RESTART)
        return;
    if (!status && !task->service) {
        task->done = true;
        return;
    }
    if (s->why || s->phase >= PHASE_CLOSE)
        return;
    if (task->absent && status == task->absent) {
        if (!is_tried_again(s, task))
            give_up(s, task, ERR_UNAVAILABLE);
        return;
    }
    task->died = true;
    task->died_at = time_now();
}

/* ---- what it said ---- */

static void read_tail(const char *path, struct str *text)
{
    char bytes[TAIL_BYTES];
    struct stat status;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (!fstat(fd, &status) && status.st_size > TAIL_BYTES)
        lseek(fd, -TAIL_BYTES, SEEK_END);
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n > 0)
        str_append_bytes(text, bytes, (size_t)n);
    while (text->n && (text->data[text->n - 1] == '\n' || text->data[text->n - 1] == '\r'))
        text->data[--text->n] = '\0';
    close(fd);
}

/* The last n lines of its stderr. */
void task_last_lines(const struct task *task, int n, struct str *lines)
{
    struct str text = STR_INIT;
    read_tail(task->errors, &text);
    const char *at = str_text(&text) + text.n;
    while (at > str_text(&text) && (at[-1] != '\n' || --n))
        at--;
    str_append(lines, at);
    str_release(&text);
}

static bool is_of_a_tool(const char *line)
{
    size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyz");
    if (!strncmp(line, "ssh: ", 5))
        return true;
    if (n != 2 || line[0] != 't' || line[1] != 'f' || line[2] != '-')
        return false;
    n = strspn(line + 3, "abcdefghijklmnopqrstuvwxyz");
    return n && !strncmp(line + 3 + n, ": ", 2);
}

/* Not what a shell says of those that ended with it. */
static void last_words(const struct task *task, char *words, size_t n)
{
    struct str text = STR_INIT;
    const char *last = "", *tool = NULL;
    read_tail(task->errors, &text);
    for (char *line = text.data, *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        last = line;
        if (is_of_a_tool(line))
            tool = line;
    }
    snprintf(words, n, "%s", tool ? tool : last);
    str_release(&text);
}

/* "killed by signal 9", or the last thing that it said. */
void task_cause(const struct task *task, char *text, size_t n)
{
    char words[1024];
    if (*task->why) {
        snprintf(text, n, "%s", task->why);
    } else if (task->code > 128 && task->code < 255) {
        snprintf(text, n, "killed by signal %d", task->code - 128);
    } else {
        last_words(task, words, sizeof words);
        snprintf(text, n, "ended with exit %d (%s)", task->code, words);
    }
}

/* ---- what the user is to hear at once ---- */

/* Whole lines of its stderr that have been written since, and hold the text of `repeats`. */
static void repeat_lines(struct supervisor *s, struct task *task)
{
    char bytes[TAIL_BYTES + 1], *line = bytes, *end;
    struct stat status;
    if (stat(task->errors, &status) || status.st_size <= task->repeated)
        return;
    int fd = open(task->errors, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? pread(fd, bytes, TAIL_BYTES, task->repeated) : 0;
    if (fd >= 0)
        close(fd);
    bytes[n > 0 ? n : 0] = '\0';
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (strstr(line, task->repeats))
            say(s, "%s: %s", task->name, strstr(line, task->repeats));
    }
    task->repeated += n == TAIL_BYTES && line == bytes ? n : line - bytes;
}

void task_tick(struct supervisor *s, struct task *task, double now)
{
    if (task->feeder.pid && task->feeder.kill_at && now >= task->feeder.kill_at)
        process_signal(&task->feeder, SIGKILL);
    if (task->repeats && task->errors)
        repeat_lines(s, task);
}
