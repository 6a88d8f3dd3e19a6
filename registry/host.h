/* SPDX-License-Identifier: Apache-2.0
 *
 * The host table's private side: where `fail` without an error object goes while a
 * module's entry runs.
 */
#ifndef REGISTRY_HOST_H
#define REGISTRY_HOST_H

#include "core/status.h"

/* Until the next call on this thread, fail(NULL, ...) records into err. */
void host_catch(strata_error *err);

#endif /* REGISTRY_HOST_H */
