/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/command/text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "checkpoint/store/best.h"
#include "show/columns.h"
#include "show/show.h"

static void print_time(struct str *out, int64_t time, bool utc)
{
    time_t seconds = (time_t)(time / 1000000);
    char text[40] = "?";
    struct tm parts;
    if (utc ? gmtime_r(&seconds, &parts) : localtime_r(&seconds, &parts))
        strftime(text, sizeof text, utc ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M:%S", &parts);
    str_append(out, text);
}

static void json_text(struct str *out, const char *key, const char *value)
{
    str_printf(out, "\"%s\":", key);
    show_json_text(out, value, strlen(value));
}

/* ---- list ---- */

static void json_manifest(struct str *out, const struct ckpt_manifest *m)
{
    char run[RUN_HEX_BYTES];
    const char *name = m->run.name;
    run_hex(&m->run, run);
    str_printf(out, "{\"step\":%" PRId64 ",\"saved\":\"", m->step);
    print_time(out, m->time, true);
    str_printf(out, "\",\"run\":\"%s\",\"run_name\":", run_is_known(&m->run) ? run : "");
    show_json_text(out, name, strlen(name));
    str_printf(out,
               ",\"tensors\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"new_bytes\":%" PRIu64
               ",\"shards\":%zu,\"scalars\":{",
               m->n_tensors, m->bytes, m->new_bytes, m->shards.n);
    for (size_t i = 0; i < m->scalars.n; i++) {
        str_append(out, i ? "," : "");
        show_json_text(out, m->scalars.items[i].name, strlen(m->scalars.items[i].name));
        str_append_char(out, ':');
        show_json_float(out, m->scalars.items[i].value);
    }
    str_append(out, "},\"tags\":[");
    const char *tag;
    for (size_t i = 0, n = 0; (tag = ckpt_manifest_next_tag(m, &i)); n++) {
        str_append(out, n ? "," : "");
        show_json_text(out, tag, strlen(tag));
    }
    str_append(out, "]}\n");
}

typedef VEC(const char *) name_vec;

void text_list(struct str *out, const manifest_vec *all, bool json)
{
    static const char *const heads[] = {"STEP", "SAVED", "TENSORS", "SIZE", "NEW", "RUN"};
    /* One run without a name needs no column. */
    bool with_run = false;
    for (size_t i = 0; i < all->n && !with_run; i++)
        with_run = *all->items[i].run.name || !run_equal(&all->items[i].run, &all->items[0].run);
    const size_t n_heads = sizeof heads / sizeof *heads - !with_run;
    name_vec names = VEC_INIT;
    for (size_t i = 0; json && i < all->n; i++)
        json_manifest(out, &all->items[i]);
    if (json)
        return;
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->items[i].scalars.n; k++) {
            const char *name = all->items[i].scalars.items[k].name;
            if (vec_find(&names, name) == names.n)
                vec_push(&names, name);
        }
    bool with_tags = false;
    for (size_t i = 0, at = 0; i < all->n && !with_tags; i++, at = 0)
        with_tags = ckpt_manifest_next_tag(&all->items[i], &at) != NULL;
    struct columns columns = {.n = (int)(n_heads + names.n + with_tags)};
    for (size_t i = 0; i < n_heads; i++)
        columns_add(&columns, "%s", heads[i]);
    for (size_t i = 0; i < names.n; i++)
        columns_add(&columns, "%s", names.items[i]);
    if (with_tags)
        columns_add(&columns, "TAGS");
    vec_each(m, all) {
        struct str saved = STR_INIT, run = STR_INIT;
        print_time(&saved, m->time, false);
        run_print(&m->run, &run);
        columns_add(&columns, "%" PRId64, m->step);
        columns_add(&columns, "%s", saved.data);
        columns_add(&columns, "%" PRIu64, m->n_tensors);
        columns_add(&columns, "%s", show_bytes((int64_t)m->bytes).s);
        columns_add(&columns, "%s", show_bytes((int64_t)m->new_bytes).s);
        if (with_run)
            columns_add(&columns, "%s", run.data);
        for (size_t k = 0; k < names.n; k++) {
            double value;
            if (ckpt_manifest_find_scalar(m, names.items[k], &value))
                columns_add(&columns, "%.6g", value);
            else
                columns_add(&columns, "-");
        }
        struct str tags = STR_INIT;
        const char *tag;
        for (size_t at = 0; (tag = ckpt_manifest_next_tag(m, &at));)
            str_printf(&tags, tags.n ? ",%s" : "%s", tag);
        if (with_tags)
            columns_add(&columns, "%s", tags.n ? tags.data : "-");
        str_release(&tags);
        str_release(&saved);
        str_release(&run);
    }
    columns_print(&columns, out);
    vec_release(&names);
}

/* ---- show ---- */

/* Prints a digest over all chunks: 12 digits suffice to tell two versions of a tensor apart. */
static void print_digest(struct str *out, const struct manifest_tensor *t)
{
    char text[2 * DIGEST_BYTES + 1];
    struct digest digest = digest_of(t->chunks, chunk_count(t->bytes) * sizeof *t->chunks);
    digest_hex(&digest, text);
    str_printf(out, "%.12s", text);
}

void text_show(struct str *out, struct source *s, bool json)
{
    if (json) {
        if (s->checkpoint)
            json_manifest(out, &s->checkpoint->manifest);
        vec_each(t, &s->tensors) {
            const struct checkpoint_entry *entry =
                t->entry >= 0 ? &s->checkpoint->entries.items[t->entry] : NULL;
            str_append_char(out, '{');
            json_text(out, "name", t->saved.name);
            str_append_char(out, ',');
            json_text(out, "container", t->saved.container);
            str_printf(out, ",\"type\":\"%s\",\"bytes\":%" PRIu64 ",\"updates\":%" PRIu64,
                       shape_text_typed(t->saved.type, &t->saved.shape), t->saved.bytes,
                       t->saved.updates);
            if (entry) {
                str_append_char(out, ',');
                json_text(out, "shard", entry->shard);
                str_append(out, ",\"digest\":\"");
                print_digest(out, entry->tensor);
                str_append_char(out, '"');
            }
            str_append(out, "}\n");
        }
        return;
    }
    const struct ckpt_manifest *m = s->checkpoint ? &s->checkpoint->manifest : NULL;
    str_printf(out, "checkpoint  %s\n", s->name);
    if (!m && s->step >= 0)
        str_printf(out, "step        %" PRId64 "\n", s->step);
    if (m) {
        str_append(out, "saved       ");
        print_time(out, m->time, false);
        str_append(out, "\nrun         ");
        run_print(&m->run, out);
        str_printf(out, "\nmade        %s\nsize        %" PRIu64 " tensors, %s, %s of them new\n",
                   m->producer, m->n_tensors, show_bytes((int64_t)m->bytes).s,
                   show_bytes((int64_t)m->new_bytes).s);
        for (size_t i = 0; i < m->scalars.n; i++)
            str_printf(out, "scalar      %s %.6g\n", m->scalars.items[i].name,
                       m->scalars.items[i].value);
        for (size_t i = 0; i < m->blobs.n; i++)
            str_printf(out, "also        %s, %zu B\n", m->blobs.items[i].name, m->blobs.items[i].n);
        for (size_t i = 0; i < m->shards.n; i++)
            str_printf(out, "shard       %s\n", m->shards.items[i].name);
    }
    static const char *const heads[] = {"NAME", "TYPE", "UPDATES", "SIZE", "SHARD", "DIGEST"};
    struct columns columns = {.n = sizeof heads / sizeof *heads};
    for (int i = 0; i < columns.n; i++)
        columns_add(&columns, "%s", heads[i]);
    for (size_t i = 0; i < s->tensors.n; i++) {
        const struct source_tensor *t = &s->tensors.items[i];
        const struct checkpoint_entry *entry =
            t->entry >= 0 ? &s->checkpoint->entries.items[t->entry] : NULL;
        struct str digest = STR_INIT;
        if (entry)
            print_digest(&digest, entry->tensor);
        columns_add(&columns, "%s", source_outer_name(s, i));
        columns_add(&columns, "%s", shape_text_typed(t->saved.type, &t->saved.shape));
        columns_add(&columns, "%" PRIu64, t->saved.updates);
        columns_add(&columns, "%s", show_bytes((int64_t)t->saved.bytes).s);
        columns_add(&columns, "%s", entry && *entry->shard ? entry->shard : "-");
        columns_add(&columns, "%s", entry ? digest.data : "-");
        str_release(&digest);
    }
    columns_print(&columns, out);
}

/* ---- diff, forget, verify ---- */

void text_diff(struct str *out, const difference_vec *differences, bool json)
{
    static const char *const kinds[] = {"values", "shape", "only in the first",
                                        "only in the second"};
    struct columns columns = {.n = 3};
    vec_each(d, differences) {
        if (json) {
            str_append_char(out, '{');
            json_text(out, "name", d->name);
            str_printf(out, ",\"difference\":\"%s\"", kinds[d->kind]);
            if (d->kind == DIFFERENCE_VALUES) {
                str_append(out, ",\"absolute\":");
                show_json_float(out, d->absolute);
                str_append(out, ",\"relative\":");
                show_json_float(out, d->relative);
                str_printf(out, ",\"elements\":%" PRId64, d->elements);
            }
            str_append(out, "}\n");
        } else {
            columns_add(&columns, "%s", d->name);
            if (d->kind == DIFFERENCE_VALUES) {
                columns_add(&columns, "%.3g", d->absolute);
                columns_add(&columns, "%.3g", d->relative);
                continue;
            }
            columns_add(&columns, "%s",
                        d->a ? shape_text_typed(d->a->saved.type, &d->a->saved.shape) : "-");
            columns_add(&columns, "%s",
                        d->b ? shape_text_typed(d->b->saved.type, &d->b->saved.shape) : "-");
        }
    }
    if (!json && differences->n)
        columns_print(&columns, out);
}

void text_retain(struct str *out, int64_t step, const char *kept_by, bool dry_run, bool json)
{
    if (json)
        str_printf(out, "{\"step\":%" PRId64 ",\"kept\":%s%s%s}\n", step, kept_by ? "\"" : "",
                   kept_by ? kept_by : "null", kept_by ? "\"" : "");
    else if (kept_by)
        str_printf(out, "step %" PRId64 "  kept (%s)\n", step, kept_by);
    else
        str_printf(out, "step %" PRId64 "  %sforgotten\n", step, dry_run ? "to be " : "");
}

void text_verify(struct str *out, const struct verify_report *report, bool json)
{
    if (!json) {
        str_printf(out,
                   "%" PRIu64 " checkpoints, %" PRIu64 " tensors, %" PRIu64
                   " chunks; %s read; %zu damaged\n",
                   report->checkpoints, report->tensors, report->chunks,
                   show_bytes((int64_t)report->checked_bytes).s, report->problems.n);
        return;
    }
    for (size_t i = 0; i < report->problems.n; i++) {
        str_printf(out, "{\"step\":%" PRId64 ",", report->problems.items[i].step);
        json_text(out, "problem", report->problems.items[i].err.text);
        str_append(out, "}\n");
    }
    str_printf(out,
               "{\"checkpoints\":%" PRIu64 ",\"tensors\":%" PRIu64 ",\"chunks\":%" PRIu64
               ",\"checked_chunks\":%" PRIu64 ",\"checked_bytes\":%" PRIu64
               ",\"problems\":%zu,\"newest_intact\":%" PRId64 "}\n",
               report->checkpoints, report->tensors, report->chunks, report->checked_chunks,
               report->checked_bytes, report->problems.n, report->newest_intact);
}

/* ---- Prometheus' text format 0.0.4: HELP and TYPE once per metric, no timestamps ---- */

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
