/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stand-in's files share: objects that are counted, and calls that may fail.
 */
#ifndef TESTS_SERVING_HOST_PRIVATE_H
#define TESTS_SERVING_HOST_PRIVATE_H

#include <stddef.h>

#include "tests/serving/host.h"

/* Memory by a call that tests of lacking memory do not let fail; zero. */
void *host_zeroed(size_t bytes);
/* The same for an object that the backend has to give back. */
void *host_make(size_t bytes);
void host_drop(void *object);
void host_count(long more); /* of objects */
/* NULL, or the error of a call that is to fail. */
TRITONSERVER_Error *host_fault(void);
#define MAY_FAIL                                                                         \
    do {                                                                                 \
        TRITONSERVER_Error *fault_ = host_fault();                                       \
        if (fault_)                                                                      \
            return fault_;                                                               \
    } while (0)
/* An object's field by a call that may fail. */
#define GIVES(function, object, type, expression)                                        \
    TRITONSERVER_Error *function(object *o, type out)                                    \
    {                                                                                    \
        MAY_FAIL;                                                                        \
        *out = expression;                                                               \
        return NULL;                                                                     \
    }

#endif /* TESTS_SERVING_HOST_PRIVATE_H */
