/* SPDX-License-Identifier: Apache-2.0
 *
 * What is found in a file's place where it was not fetched, or not taken out of an
 * archive: said behind why it is refused.
 */
#ifndef IO_STAND_IN_H
#define IO_STAND_IN_H

#include "core/status.h"

/* Add what these bytes are to the error, where they are a Git LFS pointer, a web page or
 * a zip archive. */
void stand_in_tell(const void *bytes, size_t size, strata_error *err);

#endif /* IO_STAND_IN_H */
