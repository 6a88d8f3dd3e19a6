/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_HANDLE_H
#define CORE_HANDLE_H

#include "core/device.h"

struct strata_handle {
    struct device *device;
    struct device_properties properties;
    struct allocator allocator; /* tensors, arenas and weights made through the handle */
    strata_stream *own_stream;
    strata_stream *stream; /* current */
    int math;
    int threads; /* of runs; 0: the network's */
    int wait;    /* STRATA_WAIT_* */
};

#endif /* CORE_HANDLE_H */
