/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the host device.
 *
 *   host_device  streams, copies, and the table
 *   host_event   events
 */
#ifndef CORE_HOST_DEVICE_H
#define CORE_HOST_DEVICE_H

#include "core/device.h"

int host_submit(strata_stream *s, device_work run, const void *payload, size_t bytes,
                strata_error *err);
int host_stream_wait(strata_stream *s, strata_event *e, strata_error *err);
int host_event_create(struct device *d, strata_event **out, strata_error *err);
void host_event_destroy(strata_event *e);
int host_event_record(strata_event *e, strata_stream *s, strata_error *err);
int host_event_synchronize(strata_event *e, strata_error *err);
int host_event_elapsed(double *ms, strata_event *from, strata_event *to,
                       strata_error *err);

#endif /* CORE_HOST_DEVICE_H */
