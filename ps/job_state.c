/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor's control socket answers. The folder's lock says who has it while nobody listens
 * there, and the file what it was when it was last written.
 */
#include "ps/job_state.h"

#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ps/control.h"
#include "ps/guard.h"
#include "ps/pidfd.h"

#define STATE_BYTES (64 << 20) /* at most */
#define STATUS_SECONDS 2.0     /* in which who is not frozen answers */

/* What of a state others act upon. */
struct state_facts {
    pid_t pid; /* of the supervisor that wrote it */
    bool is_over;
};

/* The one place where a state is read; a text that is none says nothing. */
static struct state_facts state_parse(const struct str *state)
{
    json_t *all = json_loads(str_text(state), 0, NULL);
    const char *phase = json_string_value(json_object_get(all, "state"));
    struct state_facts facts = {.pid = (pid_t)json_integer_value(json_object_get(all, "pid")),
                                .is_over = phase && !strcmp(phase, "over")};
    json_decref(all);
    return facts;
}

static bool read_state(const char *folder, struct str *state)
{
    struct error ignored = ERROR_INIT;
    struct str path = STR_INIT;
    str_clear(state);
    str_printf(&path, "%s/" JOB_STATE_NAME, folder);
    int code = file_read(path.data, STATE_BYTES, state, &ignored);
    str_release(&path);
    return !code;
}

/* Of who does not listen: it begins, and is a shell yet, or is about to end. */
static void stop_by_signal(int owner)
{
    struct pollfd wait = {.fd = owner, .events = POLLIN};
    if (!pidfd_kill(owner, SIGTERM))
        poll(&wait, 1, -1);
}

/* Of a state that nobody answered for: whether it is that of `owner`, who has the folder, or final.
 */
static bool is_alive_or_over(const struct str *state, pid_t owner)
{
    struct state_facts facts = state_parse(state);
    return facts.is_over || (owner && facts.pid == owner);
}

int job_state_ask(const char *folder, bool stop, struct str *state, struct error *err)
{
    const char *request = stop ? "stop" : "status";
    int code, owner = -1;
    pid_t pid = 0;
    do { /* who was put off asks again */
        close_if_open(owner);
        code = control_ask(folder, request, stop ? -1 : STATUS_SECONDS, state);
        owner = code ? guard_owner(folder, &pid) : -1;
    } while (stop && code == ERR_UNAVAILABLE && owner >= 0);
    if (stop && code == ERR_DENIED)
        error_set(err, ERR_DENIED, "job directory %s: it is another user's", folder);
    else if (stop && owner >= 0)
        stop_by_signal(owner);
    else if (code && !read_state(folder, state))
        error_set(err, ERR_NOINPUT, "job directory %s: no tf-run was ever there", folder);
    else if (code && code != ERR_DENIED && !is_alive_or_over(state, pid))
        error_set(err, ERR_UNAVAILABLE, "job directory %s: its tf-run has died", folder);
    close_if_open(owner);
    return err->code;
}

bool job_is_running(const char *folder)
{
    struct error ignored = ERROR_INIT;
    struct str state = STR_INIT;
    bool running = !job_state_ask(folder, false, &state, &ignored) && !state_parse(&state).is_over;
    str_release(&state);
    return running;
}
