/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor replies on its control socket. While nobody listens there, the folder's lock names
 * its owner, and the state file has the last state written.
 */
#include "supervise/job_state.h"

#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/patience.h"
#include "base/time.h"
#include "supervise/control.h"
#include "supervise/pidfd.h"
#include "supervise/reaper.h"

#define STATE_BYTES (64 << 20) /* maximum */
#define STATUS_SECONDS 2.0     /* in which a supervisor that is not stalled replies */
#define STOP_SECONDS 1.0       /* between a client's checks for progress to the end */
#define FROZEN_SECONDS 30.0    /* without a reply for so long, it counts as stalled */

/* The parts of a state that others act on. */
struct state_facts {
    pid_t pid; /* of the supervisor that wrote the state */
    bool is_over;
};

/* The only parser of states; an invalid text has no facts. */
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

/* ---- waiting for the end ---- */

struct stop_request {
    const char *folder;
    struct patience patience; /* without limit: `answered` decides */
    double answered;          /* time of its last reply */
};

static void report_waiting(struct stop_request *stopping)
{
    if (patience_look(&stopping->patience) == PATIENCE_TELL)
        patience_tell(&stopping->patience, "waiting for the job in %s to end", stopping->folder);
}

/* Returns whether the supervisor is busy ending rather than stalled. */
static bool still_ends(void *context)
{
    struct stop_request *stopping = context;
    struct str state = STR_INIT;
    const struct control_patience patience = {.seconds = STATUS_SECONDS};
    if (!control_ask(stopping->folder, "status", &patience, &state))
        stopping->answered = time_now();
    str_release(&state);
    report_waiting(stopping);
    return time_now() < stopping->answered + FROZEN_SECONDS;
}

/* Stops a supervisor that does not listen: it is still a shell that starts, or is about to end. */
static bool stop_by_signal(struct stop_request *stopping, int owner)
{
    struct pollfd wait = {.fd = owner, .events = POLLIN};
    stopping->answered = time_now();
    if (pidfd_kill(owner, SIGTERM))
        return true;
    while (poll(&wait, 1, (int)(STOP_SECONDS * 1000)) <= 0) {
        report_waiting(stopping);
        if (time_now() >= stopping->answered + FROZEN_SECONDS)
            return false;
    }
    return true;
}

int job_state_ask(const char *folder, bool stop, struct str *state, struct error *err)
{
    const char *request = stop ? "stop" : "status";
    struct stop_request stopping = {folder, patience_begin(-1, NULL), time_now()};
    const struct control_patience patience = {.seconds = stop ? STOP_SECONDS : STATUS_SECONDS,
                                              .goes_on = stop ? still_ends : NULL,
                                              .context = &stopping};
    int code, owner = -1;
    bool is_over = true;
    pid_t pid = 0;
    do { /* retry a refused request */
        close_if_open(owner);
        code = control_ask(folder, request, &patience, state);
        owner = code ? reaper_owner(folder, &pid) : -1;
    } while (stop && code == ERR_UNAVAILABLE && owner >= 0 && still_ends(&stopping));
    if (stop && code == ERR_DENIED)
        error_set(err, ERR_DENIED, "job directory %s: it is another user's", folder);
    else if (stop && owner >= 0)
        is_over = code != ERR_UNAVAILABLE && stop_by_signal(&stopping, owner);
    else if (code && !read_state(folder, state))
        error_set(err, ERR_NOINPUT, "job directory %s: no tf-run was ever there", folder);
    else if (code && code != ERR_DENIED) {
        /* No reply gave the state: it must be final, or written by the folder's owner. */
        struct state_facts facts = state_parse(state);
        if (!facts.is_over && (!pid || facts.pid != pid))
            error_set(err, ERR_UNAVAILABLE, "job directory %s: its tf-run has died", folder);
    }
    if (!is_over)
        error_set(err, ERR_UNAVAILABLE,
                  "job directory %s: its tf-run (pid %ld) has not answered for %.0f s; "
                  "kill -KILL %ld ends all of it",
                  folder, (long)pid, time_now() - stopping.answered, (long)pid);
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
