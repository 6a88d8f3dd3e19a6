/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that write to memory.
 */
#ifndef IO_STREAM_H
#define IO_STREAM_H

#include <stddef.h>
#include <stdio.h>

/* A stream that writes to memory: *text, which ends in a NUL, and *size are those of what
 * was flushed; malloc'ed, NULL if there is none. open_memstream (glibc 2.36) is of no
 * use: where it cannot grow, what is printed at the time is missing, and neither ferror
 * nor fclose says so. */
FILE *text_stream(char **text, size_t *size);
/* Close it: what it collected, or NULL if it failed anywhere, *text freed and NULL. */
char *text_finish(FILE *f, char **text);

#endif /* IO_STREAM_H */
