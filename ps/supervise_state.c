/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the job, in a file that appears whole, and the socket on which it is asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "ps/supervise_private.h"

#define STATE_NAME "run.json"
#define SOCKET_NAME "run.sock"
#define CLIENT_SECONDS 1 /* in which a question has to come */

static const char *const phase_names[] = {"running", "restarting", "restarting",
                                          "saving",  "leaving",    "ending",
                                          "closing", "over",       "over"};

/* ---- the text ---- */

static const char *state_name(const struct task *task)
{
    return task->main.pid   ? (task->ready         ? "ready"
                               : task->told_to_end ? "ending"
                                                   : "running")
           : task->done     ? "done"
           : task->start_at ? "waiting to start"
           : task->starts   ? "ended"
                            : "not started";
}

static json_t *task_json(const struct task *task)
{
    return json_pack("{s:s, s:I, s:s, s:i, s:i, s:s}", "task", task->name, "pid",
                     (json_int_t)task->pid, "state", state_name(task), "starts", task->starts,
                     "restarts", task->restarts, "ended", task->ended);
}

static char *state_json(const struct supervisor *s)
{
    json_t *tasks = json_array();
    for (size_t i = 0; i < s->tasks.n; i++)
        json_array_append_new(tasks, task_json(s->tasks.items[i]));
    json_t *all = json_pack("{s:I, s:s, s:s, s:I, s:i, s:s, s:i, s:o}", "pid", (json_int_t)getpid(),
                            "state", phase_names[s->phase], "why", s->why ? s->why : "", "step",
                            (json_int_t)s->step, "restarts", s->n_restarts, "max_restarts",
                            s->max_text, "result", s->result, "tasks", tasks);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL, *line = NULL;
    if (text) {
        struct str with_end = STR_INIT;
        str_printf(&with_end, "%s\n", text);
        line = with_end.data;
    }
    free(text);
    json_decref(all);
    return line;
}

char *state_of_task(const struct task *task)
{
    struct str line = STR_INIT;
    char pid[32] = "-";
    if (task->pid)
        snprintf(pid, sizeof pid, "%ld", task->pid);
    str_printf(&line, "%s %s %d %s\n", task->name, pid, task->restarts,
               *task->ended     ? task->ended
               : task->main.pid ? "running"
                                : "?");
    return line.data;
}

void state_write(struct supervisor *s)
{
    struct str path = STR_INIT, temporary = STR_INIT;
    if (!s->folder || !s->dirty)
        return;
    s->dirty = false;
    char *text = state_json(s);
    str_printf(&path, "%s/" STATE_NAME, s->folder);
    str_printf(&temporary, "%s/." STATE_NAME, s->folder);
    int fd = open(temporary.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0)
        fchmod(fd, 0644); /* whatever the umask: who may enter the folder may read it */
    if (fd >= 0 && text && write(fd, text, strlen(text)) == (ssize_t)strlen(text))
        rename(temporary.data, path.data);
    if (fd >= 0)
        close(fd);
    str_release(&path);
    str_release(&temporary);
    mem_free(text);
}

/* ---- the socket ---- */

/* A folder's name may be longer than that of a socket. */
static int socket_in(const char *folder, struct sockaddr_un *address, int *folder_fd)
{
    *folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" SOCKET_NAME,
             *folder_fd);
    return *folder_fd < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void answer(int client, struct supervisor *s)
{
    char *text = state_json(s);
    if (text)
        send(client, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
    mem_free(text);
}

/* A question is a line in one packet; who asks for the end hears of it when the socket closes. */
static void on_question(void *context)
{
    struct supervisor *s = context;
    char question[16] = "";
    struct timeval limit = {.tv_sec = CLIENT_SECONDS};
    struct ucred peer = {0};
    socklen_t n = sizeof peer;
    int client = accept4(s->control_fd, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (recv(client, question, sizeof question - 1, 0) < 0)
        question[0] = '\0';
    if (!strcmp(question, "stop\n")) {
        getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &n);
        vec_push(&s->stopping_clients, client);
        ask_to_stop(s, "TERM", 128 + SIGTERM, peer.pid);
        return;
    }
    if (!strcmp(question, "status\n"))
        answer(client, s);
    close(client);
}

int state_open(struct supervisor *s, struct error *err)
{
    struct sockaddr_un address;
    int folder;
    if (!s->folder)
        return 0;
    s->control_fd = socket_in(s->folder, &address, &folder);
    unlink(address.sun_path);
    if (s->control_fd < 0 || bind(s->control_fd, (struct sockaddr *)&address, sizeof address) ||
        listen(s->control_fd, 16))
        error_set_errno(err, ERR_IO, "%s/" SOCKET_NAME, s->folder);
    if (folder >= 0)
        close(folder);
    if (err->code)
        return err->code;
    s->control = loop_watch_new(s->loop, s->control_fd, on_question, s);
    state_write(s); /* what stands there is another job's */
    return 0;
}

void state_close(struct supervisor *s)
{
    struct str path = STR_INIT;
    s->dirty = true;
    state_write(s);
    loop_watch_free(s->control);
    if (s->control_fd >= 0) {
        close(s->control_fd);
        str_printf(&path, "%s/" SOCKET_NAME, s->folder);
        unlink(path.data);
    }
    for (size_t i = 0; i < s->stopping_clients.n; i++) {
        answer(s->stopping_clients.items[i], s);
        close(s->stopping_clients.items[i]);
    }
    vec_release(&s->stopping_clients);
    str_release(&path);
}

/* ---- asking ---- */

static char *read_all(int fd)
{
    struct str text = STR_INIT;
    char bytes[4096];
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            str_append_bytes(&text, bytes, (size_t)n);
    return text.data;
}

/* Nobody answers: what its file says, if that is the end. */
static int read_state(const char *folder, char **answer, struct error *err)
{
    struct str path = STR_INIT;
    str_printf(&path, "%s/" STATE_NAME, folder);
    int fd = open(path.data, O_RDONLY | O_CLOEXEC);
    *answer = fd >= 0 ? read_all(fd) : NULL;
    if (fd >= 0)
        close(fd);
    if (!*answer)
        error_set(err, ERR_NOINPUT, "job directory %s: no tf-run was ever there", folder);
    else if (!strstr(*answer, "\"state\":\"over\""))
        error_set(err, ERR_UNAVAILABLE, "job directory %s: its tf-run has died", folder);
    str_release(&path);
    if (err->code) {
        mem_free(*answer);
        *answer = NULL;
    }
    return err->code;
}

int supervise_ask(const char *folder, const char *question, char **answer, struct error *err)
{
    struct sockaddr_un address;
    char line[16];
    int folder_fd, n = snprintf(line, sizeof line, "%.10s\n", question);
    int fd = socket_in(folder, &address, &folder_fd);
    *answer = NULL;
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof address) &&
        send(fd, line, (size_t)n, MSG_NOSIGNAL) == n)
        *answer = read_all(fd);
    if (fd >= 0)
        close(fd);
    if (folder_fd >= 0)
        close(folder_fd);
    return *answer ? 0 : read_state(folder, answer, err);
}
