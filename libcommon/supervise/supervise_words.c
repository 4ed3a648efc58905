/* SPDX-License-Identifier: Apache-2.0
 *
 * The stderr of a task: why it ended, and lines to show the user at once.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "supervise/supervise_private.h"

#define TAIL_BYTES 4096 /* examined at the end */

/* Reads from an offset of the file on. Returns the number of bytes. */
static size_t read_errors(const struct task *task, off_t at, char bytes[TAIL_BYTES + 1])
{
    size_t n = task->errors ? file_read_part(task->errors, at, bytes, TAIL_BYTES) : 0;
    bytes[n] = '\0';
    return n;
}

/* Reads the last output of the task's last process: other output is no cause of its end. */
static size_t read_last(const struct task *task, char bytes[TAIL_BYTES + 1])
{
    struct stat file;
    bytes[0] = '\0';
    if (!task->errors || stat(task->errors, &file) || file.st_size <= task->began)
        return 0;
    off_t at = file.st_size - TAIL_BYTES;
    return read_errors(task, at > task->began ? at : task->began, bytes);
}

/* Gets the last line, preferring one of a tool to a shell's remark about processes that ended. */
void task_last_words(const struct task *task, char text[TEXT_BYTES])
{
    char tail[TAIL_BYTES + 1], *rest = tail, *line;
    const char *last = "", *tool = NULL;
    read_last(task, tail);
    while ((line = strsep(&rest, "\r\n"))) {
        line += time_stamp_length(line);
        if (*line)
            last = line;
        if (str_starts(line, "tf-") || str_starts(line, "ssh: "))
            tool = line;
    }
    snprintf(text, TEXT_BYTES, "%s", tool ? tool : last);
}

/* Prints the last lines of a task unchanged when the job ends. */
void task_last_lines(struct supervisor *s, const struct task *task)
{
    char tail[TAIL_BYTES + 1];
    size_t n = read_last(task, tail);
    while (n && strchr("\r\n", tail[n - 1]))
        tail[--n] = '\0';
    for (int lines = 3; n && (tail[n - 1] != '\n' || --lines);)
        n--;
    if (tail[n])
        s->options.say(s->options.context, tail + n);
}

/* Gets "killed by signal 9", or the last line of its output. */
void task_cause(const struct task *task, char text[TEXT_BYTES])
{
    const struct life *life = &task->life;
    char words[TEXT_BYTES];
    task_last_words(task, words);
    if (*life->why || was_killed(life->code))
        snprintf(text, TEXT_BYTES, "%s", *life->why ? life->why : life->ended);
    else
        snprintf(text, TEXT_BYTES, "ended with exit %d (%.900s)%s%s", life->code, words,
                 *life->fed ? ", fed by a command that ended with " : "", life->fed);
}

/* Shows new whole lines that contain a text of `repeats`. */
void task_repeat(struct supervisor *s, struct task *task)
{
    char bytes[TAIL_BYTES + 1], *line = bytes, *end;
    struct stat file;
    if (stat(task->errors, &file) || file.st_size <= task->repeated)
        return;
    size_t n = read_errors(task, task->repeated, bytes);
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        /* The shown text begins at the first line of `repeats` that is found. */
        const char *repeated = NULL;
        for (const char *text = task->repeats; text && !repeated; text = strchr(text, '\n')) {
            text += *text == '\n';
            repeated = memmem(line, strlen(line), text, strcspn(text, "\n"));
        }
        if (repeated)
            (str_starts(repeated, "no") ? say_loss : say)(s, "%s: %s", task->name, repeated);
    }
    task->repeated += n == TAIL_BYTES && line == bytes ? (off_t)n : line - bytes;
}
