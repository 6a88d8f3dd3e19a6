/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the host device.
 *
 *   host_stream  streams
 *   host_event   events, which are work on streams
 *   crew         leaders of teams, to whom runs of several threads go
 *   wait         how teams wait between parallel regions
 *   host_device  copies and the table
 */
#ifndef CORE_HOST_DEVICE_H
#define CORE_HOST_DEVICE_H

#include "core/device.h"

/* stream.c */
int host_stream_create(struct device *d, strata_stream **out, strata_error *err);
void host_stream_destroy(strata_stream *s);
int host_stream_synchronize(strata_stream *s, strata_error *err);
void host_stream_run_here(strata_stream *s);
bool host_stream_visit(strata_stream *s, int threads, int wait);
/* Do work that takes no time at once, if nothing is under way; else false. */
bool host_stream_idle_run(strata_stream *s, device_work run, void *payload);
int host_submit(strata_stream *s, device_work run, const void *payload, size_t bytes,
                strata_error *err);
int host_run_begin(strata_stream *s, int threads, int wait, strata_error *err);
void host_run_end(strata_stream *s);

/* event.c */
int host_stream_wait(strata_stream *s, strata_event *e, strata_error *err);
int host_event_create(struct device *d, strata_event **out, strata_error *err);
void host_event_destroy(strata_event *e);
int host_event_record(strata_event *e, strata_stream *s, strata_error *err);
int host_event_synchronize(strata_event *e, strata_error *err);
int host_event_elapsed(double *ms, strata_event *from, strata_event *to,
                       strata_error *err);

#endif /* CORE_HOST_DEVICE_H */
