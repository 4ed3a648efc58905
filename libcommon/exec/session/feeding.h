/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathering the feeds of a step from records.
 */
#ifndef TF_EXEC_FEEDING_H
#define TF_EXEC_FEEDING_H

#include "exec/session/driver.h"

struct step_feeding {
    struct feeds *feeds;   /* with the constant ones only */
    struct record *record; /* memory for those that are read */
    int64_t step;          /* that they are for */
    bool may_end;          /* there may be none: other steps were fed */
};

/* As driver_next_feeds, of a driver that has a reader. Of the driver no more than its reader is
 * changed: any thread, one at a time. */
int feeding_read(const struct driver *driver, const struct step_feeding *feeding, bool *more,
                 struct error *err);

/* The driver's batch is that of its next step, of which devices may ask for what they want. */
void driver_begin_staged(struct driver *driver);

/* ERR_NOINPUT naming the first that is not fed. */
int feeding_lacks(const struct driver *driver, const struct feeds *feeds, struct error *err);

#endif
