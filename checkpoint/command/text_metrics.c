/* SPDX-License-Identifier: Apache-2.0
 *
 * Prometheus' text format 0.0.4: HELP and TYPE once per metric, labels quoted, no timestamps.
 */

#include "checkpoint/command/text.h"

static void print_metric(struct str *out, const struct text_metrics *m, const char *name,
                         const char *help, double value)
{
    str_printf(out, "# HELP tf_ckpt_%s %s\n# TYPE tf_ckpt_%s gauge\ntf_ckpt_%s", name, help, name,
               name);
    /* {verb="verify",store="/var/backup"} */
    str_printf(out, "{verb=\"%s\",store=\"", m->verb);
    for (const char *p = m->store; *p; p++) {
        if (*p == '\\' || *p == '"')
            str_append_char(out, '\\');
        if (*p == '\n')
            str_append(out, "\\n");
        else
            str_append_char(out, *p);
    }
    str_append(out, "\"} ");
    str_append_float64(out, value);
    str_append_char(out, '\n');
}

void text_metrics(struct str *out, const struct text_metrics *m)
{
    print_metric(out, m, "exit_status", "Exit status of the last run.", m->status);
    print_metric(out, m, "end_timestamp_seconds", "When the last run ended.",
                 (double)m->time * 1e-6);
    print_metric(out, m, "duration_seconds", "How long the last run took.", m->seconds);
    if (m->problems >= 0)
        print_metric(out, m, "damaged_tensors", "Damage that the last verification found.",
                     (double)m->problems);
    if (!m->store_bytes)
        return;
    print_metric(out, m, "checkpoints", "Checkpoints in the store.", (double)m->checkpoints);
    print_metric(out, m, "store_bytes", "Size of the store's file.", (double)m->store_bytes);
    if (m->newest < 0)
        return;
    print_metric(out, m, "newest_step", "Step of the newest checkpoint.", (double)m->newest);
    print_metric(out, m, "newest_timestamp_seconds", "When the newest checkpoint was saved.",
                 (double)m->newest_time * 1e-6);
}
