/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults on purpose: the k-th allocation or file operation that the library makes fails.
 * Calls are caught at link time (--wrap, tests/local.mk), so those of the C library and
 * of other libraries go through; jansson's are caught where it is told so.
 */
#ifndef TESTS_SUPPORT_FAULT_H
#define TESTS_SUPPORT_FAULT_H

#include <stdbool.h>

enum fault_kind {
    FAULT_MEMORY,      /* an allocation gives NULL */
    FAULT_IO,          /* a file operation gives EIO */
    FAULT_INTERRUPTED, /* a read or write gives EINTR, once */
    FAULT_SHORT        /* a read or write is of one byte */
};

/* Whether jansson's allocations are among them. Not where JSON is read: 2.14 writes past
 * its buffer when that cannot grow. To be called before there is any JSON. */
void fault_json(bool on);
/* From now on calls of the kind are counted and the at-th fails, the later ones too if
 * `lasting`; at = 0: none does. */
void fault_arm(enum fault_kind kind, long at, bool lasting);
/* No more; how many calls were counted. */
long fault_disarm(void);
/* Blocks that the library has allocated and not freed. */
long fault_blocks(void);

#endif /* TESTS_SUPPORT_FAULT_H */
